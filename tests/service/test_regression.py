"""Suites: read, run, compared."""

import json
from pathlib import Path

import pytest

from costmodel.errors import InputError
from service import regression
from service.cli.main import run
from service.regression import read_suite
from tests.project.sources import ROOT
from tests.service.fixtures import plan_document, returning

SUITE = """
cases:
  - {name: one, model: a, cluster: b, job: {global_batch_size: 8, sequence_length: 128}}
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(regression, "plan_question", returning(plan_document()))
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE, encoding="utf-8")
    return path


def test_the_bundled_suite_has_ten_cases() -> None:
    assert len(read_suite(ROOT / "service" / "regress_suite.yaml").cases) == 10


def test_an_updated_baseline_passes(suite: Path, tmp_path: Path) -> None:
    baseline = str(tmp_path / "baseline.json")

    assert run(["regress", str(suite), "--baseline", baseline, "--update"]) == 0
    assert run(["regress", str(suite), "--baseline", baseline]) == 0


def test_a_slower_plan_fails(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = str(tmp_path / "baseline.json")
    run(["regress", str(suite), "--baseline", baseline, "--update"])
    slower = plan_document()
    slower["prediction"]["step_time_s"] = 2.1
    monkeypatch.setattr(regression, "plan_question", returning(slower))
    capsys.readouterr()

    assert run(["regress", str(suite), "--baseline", baseline, "--format=json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["passed"], report["cases"][0]["verdict"]) == (False, "slower")
    assert run(["regress", str(suite), "--baseline", baseline, "--threshold=0.1"]) == 0


def test_a_plan_that_is_lost_fails(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline = str(tmp_path / "baseline.json")
    run(["regress", str(suite), "--baseline", baseline, "--update"])
    lost = plan_document(status="infeasible", pipelines=[])
    monkeypatch.setattr(regression, "plan_question", returning(lost))

    assert run(["regress", str(suite), "--baseline", baseline]) == 1


def test_cases_are_named_apart(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE + SUITE.splitlines()[-1] + "\n", encoding="utf-8")

    with pytest.raises(InputError, match="apart"):
        read_suite(path)


def test_a_missing_baseline_is_bad_input(suite: Path, tmp_path: Path) -> None:
    assert run(["regress", str(suite), "--baseline", str(tmp_path / "none.json")]) == 2
