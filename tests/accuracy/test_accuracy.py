"""The document of `haplan accuracy`."""

import json
from pathlib import Path

import pytest

from costmodel.calibration.accuracy import Row, accuracy, macro_median, regret, statistics
from costmodel.calibration.case import check_quality
from costmodel.errors import InputError
from service.cli.main import run
from tests.accuracy.test_bundled_cases import CASES

BUNDLED = sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
FIGURES = {"n", "mape", "median_ape", "p90_ape", "bias", "macro_median"}


def row(
    error: float, *, name: str = "r", stack: str = "s", group: str = "g", measured_s: float = 1.0
) -> Row:
    return Row(
        id=name,
        stack=stack,
        group=group,
        tuned=True,
        errors={"time": error},
        predicted_s=measured_s * (1.0 + error),
        measured_s=measured_s,
        half_width=0.2,
        assumptions=(),
    )


def test_every_row_is_scored_or_has_a_reason() -> None:
    document = accuracy(CASES, min_quality="A")

    assert document["rows"] == len(CASES)
    assert document["scored"] + len(document["skipped"]) == len(CASES)
    assert all(item["id"] and item["reason"] for item in document["skipped"])


def test_the_document_has_the_figures_of_every_metric() -> None:
    document = accuracy(CASES)

    for metric in ("time", "time_tuned", "time_untuned", "memory", "static_memory"):
        assert set(document[metric]) == FIGURES
    assert 0 <= document["coverage"] <= 1
    assert sum(own["scored"] for own in document["by_stack"].values()) == document["scored"]
    json.dumps(document, allow_nan=False)


def test_every_scored_run_is_listed_with_its_assumptions() -> None:
    document = accuracy(CASES)

    assert len(document["runs"]) == document["scored"]
    for scored in document["runs"]:
        low, high = scored["interval_s"]
        assert low < scored["predicted_s"] < high
        error = scored["predicted_s"] / scored["measured_s"] - 1.0
        assert scored["errors"]["time"] == pytest.approx(error)
        assert all(scored["assumptions"])


def test_large_stacks_count_alike() -> None:
    rows = [row(0.1, stack="a")] * 20 + [row(-0.3, stack="b")] * 40 + [row(9.0, stack="c")] * 19

    assert macro_median(rows, "time") == pytest.approx(0.2)
    assert statistics(rows[:20], "time")["bias"] == pytest.approx(0.1)


def test_regret_is_what_the_choice_loses() -> None:
    """The layout predicted fastest took 1.25 s, the fastest 1.0 s: a fifth of the throughput."""
    slow = [row(0.0, name=str(i), measured_s=2.0) for i in range(6)]
    rows = [row(0.5, name="best"), row(-0.5, name="choice", measured_s=1.25), *slow]

    assert regret(rows) == {
        "groups": 1,
        "mean": pytest.approx(0.2),
        "median": pytest.approx(0.2),
        "p90": pytest.approx(0.2),
    }
    assert regret(rows[:7]) == {"groups": 0}


def test_an_interval_is_symmetric_in_ratios() -> None:
    assert row(0.19).covered
    assert row(-0.16).covered
    assert not row(0.21).covered
    assert not row(-0.17).covered


def test_the_command_prints_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["accuracy", *map(str, BUNDLED), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == len(CASES)
    assert run(["accuracy", *map(str, BUNDLED)]) == 0
    assert "runs scored" in capsys.readouterr().out


def test_a_folder_is_scored_and_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.jsonl").write_bytes(BUNDLED[0].read_bytes())
    assert run(["accuracy", str(tmp_path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["scored"] > 0

    (tmp_path / "one.jsonl").write_text("", encoding="utf-8")
    assert run(["accuracy", str(tmp_path / "one.jsonl")]) == 2
    assert "nothing to score" in capsys.readouterr().err
    (tmp_path / "one.jsonl").write_text("{}\n", encoding="utf-8")
    assert run(["accuracy", str(tmp_path), "--format", "json"]) == 2
    assert "one.jsonl:1" in capsys.readouterr().err


def test_all_rows_can_be_scored_with_one_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Korthikanti et al. with products at half of their rate: predicted slower than measured."""
    profile = tmp_path / "slow.yaml"
    profile.write_text("efficiency: {gemm: {value: 0.4}}\n")
    files = [str(path) for path in BUNDLED if "korthikanti" in path.name]
    found: list[float] = []
    for own in ([], ["--software", str(profile)], ["--software", "torchtitan"]):
        assert run(["accuracy", *files, *own, "--format", "json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["time"]["bias"])

    assert found[1] > found[0] + 0.3
    assert found[2] != found[0]
    assert run(["accuracy", *files, "--software", "nomad"]) == 2
    assert "--software" in capsys.readouterr().err


def test_an_unknown_quality_is_refused() -> None:
    assert check_quality("a") == "A"
    with pytest.raises(InputError, match="one of A, B, C"):
        check_quality("D")
