"""What is said about a finished plan: why it is so, and whether it runs."""

import json
from pathlib import Path

import pytest

from service import usecases
from service.cli.main import run
from service.cli.text.validate_text import show_validation
from service.outcomes import PolicyError
from tests.service.fixtures import Document, failing, returning
from tests.service.test_text import text_of

JOB = ["--global-batch-size=64", "--sequence-length=4096"]


def report(**changes: object) -> Document:
    document: Document = {
        "ok": True,
        "ranks": 16,
        "loss_max_abs_diff": 1e-14,
        "grad_max_rel_diff": 1e-12,
        "traffic_bytes": {"predicted": {"tp": 1000, "pp": 24}, "observed": {"tp": 1000, "pp": 24}},
        "reductions": ["ranks: 64 became 16"],
        "not_covered": ["bf16 arithmetic"],
        "differences": [],
    }
    return document | changes


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    assert run(["plan", "llama3-8b", "hybrid-64", *JOB, "-o", str(path)]) == 0
    return path


def test_an_explanation_draws_and_judges(
    plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", str(plan_file)]) == 0
    text = capsys.readouterr().out
    for part in ("Why", "Schedule", "|", "What a change would do", "proven bound"):
        assert part in text
    head = text.partition("Why")[0].split("\n")
    assert [line.split("  ")[0] for line in head[1:]] == ["step time", "proven bound", "", ""]


def test_the_whole_plan_is_shown_on_demand(
    plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", str(plan_file), "--full"]) == 0
    text = capsys.readouterr().out
    for part in ("plan sha256:", "Step time", "Compared with", "Why", "Schedule"):
        assert part in text


def test_an_explanation_is_a_document(plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(plan_file), "--format=json"]) == 0
    document = json.loads(capsys.readouterr().out)
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    assert document["plan"]["id"] == plan["id"]
    assert document["summary"]


def test_a_plan_that_was_cut_is_bad_input(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    del plan["model"]
    path = tmp_path / "cut.json"
    path.write_text(json.dumps(plan), encoding="utf-8")

    assert run(["explain", str(path)]) == 2
    assert "plan again" in capsys.readouterr().err


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_the_verdict_is_the_exit_code(
    ok: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(usecases, "validate_plan", returning(report(ok=ok)))

    assert run(["validate", "plan.json", "--format=json"]) == code
    assert json.loads(capsys.readouterr().out) == report(ok=ok)


def test_an_execution_that_does_not_finish_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecases, "validate_plan", failing(PolicyError("too slow")))

    assert run(["validate", "plan.json"]) == 1


def test_an_infeasible_plan_has_nothing_to_execute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    assert run(["plan", "deepseek-v3", "hybrid-64", *JOB, "-o", str(path)]) == 3
    capsys.readouterr()

    assert run(["validate", str(path)]) == 3
    assert capsys.readouterr().err == "haplan: nothing to execute: the plan is infeasible\n"


def test_without_torch_the_fix_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ModuleNotFoundError("No module named 'torch'", name="torch")
    monkeypatch.setattr(usecases, "validate_plan", failing(error))

    assert run(["validate", "plan.json"]) == 2
    assert "haplan[runner]" in capsys.readouterr().err


def test_a_good_report_says_what_was_reduced() -> None:
    text = text_of(show_validation(report()))

    for part in ("1,024 bytes, as predicted: pp 24, tp 1,000", "64 became 16", "bf16 arithmetic"):
        assert part in text


def test_a_bad_report_says_what_differs() -> None:
    traffic = {"predicted": {"tp": 1}, "observed": {"tp": 2, "dp": 3}}
    bad = report(ok=False, traffic_bytes=traffic, differences=["a loss differs by 1"])
    text = text_of(show_validation(bad))

    for part in ("differs from", "not as predicted", "dp 3 (not 0)", "tp 2 (not 1)", "by 1"):
        assert part in text


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"pipelines": []}, "/pipelines"),
        ({"pipelines": "x"}, "/pipelines"),
        ({"schedule": {"kind": "zz", "virtual_stages": 1}}, "/schedule/kind"),
        ({"job": {"global_batch_size": -1}}, "/job/sequence_length"),
        ({"cluster": {"document": {}}}, "/cluster/document/pools"),
        ({"model": {"graph": {}}}, "/model/graph/blocks"),
        ({"model": 3}, "/model/graph"),
    ],
)
def test_an_edited_plan_is_checked_before_it_is_explained(
    change: Document,
    field: str,
    plan_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "plan.json"
    plan = json.loads(plan_file.read_text(encoding="utf-8")) | change
    path.write_text(json.dumps(plan), encoding="utf-8")

    assert run(["explain", str(path)]) == 2
    assert f"{path} {field}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tp", 0), ("tp", 2**40), ("tp", 3), ("chunks", [[0, 10**12]]), ("chunks", [[0, 33]]),
        ("pool", "zz"), ("zero", 9), ("micro_batch_size", 10**12),
    ],
)  # fmt: skip
def test_an_edited_stage_is_checked_before_it_is_explained(
    key: str, value: object, plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    plan["pipelines"][0]["stages"][0][key] = value
    path.write_text(json.dumps(plan), encoding="utf-8")

    assert run(["explain", str(path)]) == 2
    assert f"{path} /pipelines" in capsys.readouterr().err
