"""The command line: what it prints where, and how it ends."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

import planner
from costmodel.errors import InputError
from costmodel.step import EVALUATOR_VERSION
from service import usecases
from service.cli.commands import REGISTER
from service.cli.main import build_app, run
from service.outcomes import TimeLimitError
from tests.service.fixtures import failing, plan_document, returning

PLAN = ["plan", "llama3-8b", "hybrid-64", "--global-batch-size=64", "--sequence-length=4096"]

COMMANDS = {
    "accuracy", "calibrate", "plan", "estimate", "model", "explain", "validate", "chips",
    "clusters", "links", "regress", "serve", "simulate",
}  # fmt: skip
LATER = ("import", "export", "lint", "improve", "transition", "replan")


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecases, "plan_question", returning(plan_document()))


def test_the_commands_are_these() -> None:
    names = {command.name for command in build_app().registered_commands}

    assert names == COMMANDS
    assert len(REGISTER) == len(COMMANDS)
    assert not names.intersection(LATER)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"haplan {version('haplan')}, evaluator {EVALUATOR_VERSION}\n"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Examples" in text
    assert f"haplan {command}" in text


@pytest.mark.usefixtures("planned")
def test_text_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(PLAN) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for part in ("feasible", "17 (0-16) +E", "15 (17-31) +H", "1.40 x", "8 in roce", "a warning"):
        assert part in captured.out


@pytest.mark.usefixtures("planned")
def test_json_is_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == plan_document()
    assert captured.err == ""


@pytest.mark.usefixtures("planned")
def test_the_document_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "plan.json"

    assert run([*PLAN, "-o", str(path)]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == plan_document()
    assert "feasible" in capsys.readouterr().out
    assert [p.name for p in path.parent.iterdir()] == ["plan.json"]


@pytest.mark.usefixtures("planned")
def test_a_file_that_cannot_be_written_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()

    assert run([*PLAN, "-o", str(tmp_path / "file" / "plan.json")]) == 2
    assert "--output" in capsys.readouterr().err


def test_infeasible_is_an_answer_with_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = plan_document(status="infeasible", pipelines=[], warnings=["12 GiB are missing"])
    monkeypatch.setattr(usecases, "plan_question", returning(document))

    assert run(PLAN) == 3
    assert "12 GiB are missing" in capsys.readouterr().out


def test_no_plan_in_time_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecases, "plan_question", failing(TimeLimitError("too early")))

    assert run(PLAN) == 4


@pytest.mark.parametrize(("reproducible", "code"), [(True, 3), (False, 4)])
def test_what_the_clock_cut_short_is_not_called_infeasible(
    reproducible: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(*_arguments: object, **_options: object) -> SimpleNamespace:
        document = plan_document(status="infeasible")
        return SimpleNamespace(layout=None, reproducible=reproducible, document=lambda: document)

    monkeypatch.setattr(planner, "plan", plan)

    assert run(PLAN) == code


def test_a_bug_does_not_look_like_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(usecases, "plan_question", failing(ZeroDivisionError("oh")))

    assert run(PLAN) == 70
    assert "internal error" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["plan", "llama3-8b"],
        [*PLAN, "--unknown"],
        [*PLAN[:3], "--global-batch-size=many", "--sequence-length=1"],
        [*PLAN, "--format", "xml"],
    ],
)
def test_a_wrong_command_line_is_bad_input(arguments: list[str]) -> None:
    assert run(arguments) == 2


def test_all_faults_are_named_by_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "llama3-8b", "hybrid-64", "--global-batch-size=0", "--sequence-length=-5"]

    assert run([*arguments, "--precision=bf17", "--micro-batch-size=few"]) == 2
    lines = capsys.readouterr().err.splitlines()
    options = [line.split(": ")[1] for line in lines]
    assert set(options) == {
        "--global-batch-size",
        "--sequence-length",
        "--precision",
        "--micro-batch-size",
    }


def test_unknown_names_come_together_with_suggestions(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "lama3-70b", "hybrid", *PLAN[3:], "--target=x", "--schedule=1f2b"]

    assert run(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    names = [line.split()[1].removesuffix(":") for line in lines]
    assert names == ["MODEL", "CLUSTER", "--schedule", "--target"]
    assert "llama3-70b" in lines[0]
    assert "1f1b" in lines[2]


@pytest.mark.parametrize("option", [["--format", "json"], ["--format=json"]])
def test_errors_are_json_when_json_is_asked_for(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "llama3-8b", "hybrid-64", "--global-batch-size=0", *option]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert set(json.loads(captured.err)) == {"error"}


def test_json_errors_carry_the_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = InputError.of(field="/job/precision", value=1, rule="must be known", fix="write bf16")
    monkeypatch.setattr(usecases, "plan_question", failing(error))

    assert run([*PLAN, "--format=json"]) == 2
    found = json.loads(capsys.readouterr().err)["error"]
    assert found["errors"][0]["pointer"] == "#/job/precision"
    assert found["errors"][0]["fix"] == "write bf16"


def test_a_model_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["model", "llama3-70b", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["parameters"]["total"] == document["parameters"]["active"] == 70553706496
    assert document["parameters"]["mtp"] == 0
    assert (document["layers"], document["sequence_length"]) == (80, 4096)


def test_a_graph_is_itself_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "graph.json"

    assert run(["model", "mixtral-8x22b", "--graph", "-o", str(path)]) == 0
    capsys.readouterr()
    assert run(["model", str(path), "--format=json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert run(["model", "mixtral-8x22b", "--format=json"]) == 0
    assert again == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", ["chips", "clusters"])
def test_what_is_bundled_can_be_listed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--format=json"]) == 0
    names = [item["name"] for item in json.loads(capsys.readouterr().out)["items"]]
    assert names
    assert run([command]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in names)


@pytest.mark.parametrize("command", ["explain", "validate"])
def test_a_file_that_is_no_plan_is_bad_input(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"schema": "other"}', encoding="utf-8")

    assert run([command, str(path)]) == 2
    assert "haplan.plan/v1" in capsys.readouterr().err
    assert run([command, str(tmp_path / "missing.json")]) == 2


def test_multi_token_prediction_is_counted_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["model", "deepseek-v3", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    parameters = document["parameters"]
    assert parameters["total"] == 671026404352
    assert 10e9 < parameters["mtp"] < 14e9
    assert sum(b["count"] * b["parameters"] for b in document["blocks"]) == pytest.approx(
        parameters["total"] + parameters["mtp"], rel=0.01
    )
    assert run(["model", "deepseek-v3"]) == 0
    assert "multi-token prediction" in capsys.readouterr().out


@pytest.mark.parametrize("length", [300, 5000])
def test_a_path_that_is_too_long_is_bad_input(
    length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["model", "a" * length]) == 2
    assert run(["plan", "a" * length, "b" * length, *PLAN[3:]]) == 2
    assert "internal" not in capsys.readouterr().err


def test_a_long_path_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path is no name: 200 characters are not much for it."""
    folder = tmp_path.joinpath(*["d" * 60] * 5)
    folder.mkdir(parents=True)
    assert run(["model", "llama3-8b", "--graph", "-o", str(folder / "graph.json")]) == 0
    capsys.readouterr()

    arguments = ["estimate", str(folder / "graph.json"), *PLAN[2:], "--layout", "tp=8,pp=4,dp=2"]
    assert run(arguments) == 0


@pytest.mark.parametrize("size", ["--3", "-", "+", "9" * 6000, "1.0", "\u00b2"])
def test_a_micro_batch_size_that_is_no_number_is_bad_input(
    size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*PLAN, f"--micro-batch-size={size}"]) == 2
    assert "--micro-batch-size: must be" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "1e9"])
def test_a_time_limit_is_a_sensible_number(limit: str) -> None:
    assert run([*PLAN, f"--time-limit={limit}"]) == 2


def test_wrong_values_do_not_hide_wrong_names(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "lama3-70b", "hybrid", "--global-batch-size=0", "--sequence-length=1"]

    assert run([*arguments, "--schedule=1f2b", "--target=x"]) == 2
    lines = capsys.readouterr().err.splitlines()
    names = [line.split()[1].removesuffix(":") for line in lines]
    assert names == ["--global-batch-size", "MODEL", "CLUSTER", "--schedule", "--target"]


def test_all_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "llama3-8b", "--sequence-length=1"]) == 2
    text = capsys.readouterr().err
    assert [name in text for name in ("CLUSTER", "--global-batch-size", "MODEL", "--seq")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--global-batch-size=many", "--sequence-length=1"], "--global-batch-size: must be"),
        (["--global-batch-size=1.5", "--sequence-length=1"], "--global-batch-size: must be"),
        (["--sequence-length=1"], "Missing option '--global-batch-size'"),
        ([*PLAN[3:], "--time-limit=0"], "--time-limit"),
    ],
)
def test_a_wrong_number_does_not_hide_a_wrong_name(
    options: list[str], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "lama3-70b", "hybrid", *options]) == 2
    text = capsys.readouterr().err
    for part in (fault, "haplan: MODEL: ", "haplan: CLUSTER: "):
        assert part in text


def test_a_trace_is_shown_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(usecases, "plan_question", failing(ZeroDivisionError("oh")))

    assert run(PLAN) == 70
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setenv("HAPLAN_TRACE", "1")
    assert run(PLAN) == 70
    assert "Traceback" in capsys.readouterr().err


def test_the_command_is_installed() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("haplan"), "--help"], capture_output=True, text=True
    )

    assert done.returncode == 0
    assert "plan" in done.stdout
