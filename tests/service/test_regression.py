"""Suites: read, run, compared."""

import json
from pathlib import Path

import pytest

from costmodel.errors import InputError
from costmodel.hardware.read import load_cluster
from service import regression
from service.cli.main import run
from service.regression import read_suite
from tests.project.sources import ROOT
from tests.service.fixtures import plan_document, returning

SUITE = """
cases:
  - name: one
    model: llama3-8b
    cluster: hybrid-64
    job: {global_batch_size: 8, sequence_length: 128}
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
    path.write_text(SUITE + SUITE.removeprefix("\ncases:\n"), encoding="utf-8")

    with pytest.raises(InputError, match="apart"):
        read_suite(path)


def test_a_missing_baseline_is_bad_input(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["regress", str(suite), "--baseline", str(tmp_path / "none.json")]) == 2
    assert "create it with --update" in capsys.readouterr().err


def test_paths_are_seen_from_the_suite(suite: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    cluster = json.dumps(dict(load_cluster("hybrid-64").document))
    (tmp_path / "own" / "cluster.yaml").write_text(cluster, encoding="utf-8")
    suite.write_text(SUITE.replace("hybrid-64", "own/cluster.yaml"), encoding="utf-8")
    [case] = read_suite(suite).cases

    assert case.cluster == str(tmp_path / "own" / "cluster.yaml")
    assert case.model == "llama3-8b"


def test_paths_are_else_seen_from_where_one_is(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    cluster = json.dumps(dict(load_cluster("hybrid-64").document))
    (tmp_path / "here" / "cluster.yaml").write_text(cluster, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    suite.write_text(SUITE.replace("hybrid-64", "cluster.yaml"), encoding="utf-8")
    [case] = read_suite(suite).cases

    assert case.cluster == "cluster.yaml"


def test_wrong_names_of_all_cases_are_told_before_any_is_planned(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = SUITE.removeprefix("\ncases:\n").replace("one", "two").replace("-64", "")
    suite.write_text(SUITE.replace("llama3-8b", "lama") + second, encoding="utf-8")

    assert run(["regress", str(suite), "--baseline", str(tmp_path / "b.json"), "--update"]) == 2
    text = capsys.readouterr().err
    assert "/cases/0/model" in text
    assert "/cases/1/cluster" in text


def test_a_wrong_job_does_not_hide_wrong_names(suite: Path) -> None:
    wrong = SUITE.replace("llama3-8b", "lama").replace("size: 8", "size: 0")
    suite.write_text(wrong.replace("hybrid-64", "hybrid"), encoding="utf-8")

    with pytest.raises(InputError) as caught:
        read_suite(suite)
    fields = [violation.field.removeprefix(str(suite)) for violation in caught.value.violations]
    assert fields == ["/cases/0/job/global_batch_size", "/cases/0/model", "/cases/0/cluster"]
