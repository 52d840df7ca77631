"""Plan documents from end to end: good ones, broken ones, and what cannot be executed."""

import copy
from typing import Any

import pytest

import runner
from costmodel.errors import InputError
from costmodel.hardware.read import load_cluster
from costmodel.model.document import graph_document
from tests.runner.tiny import LLAMA, SEQUENCE, model

Document = dict[str, Any]


def stage(pool: str, chunks: list[list[int]], **values: Any) -> Document:
    defaults: Document = {
        "nodes": [],
        "embedding": False,
        "head": False,
        "mtp": 0,
        "tp": 1,
        "sequence_parallel": True,
        "cp": 1,
        "ep": 1,
        "etp": 1,
        "replicas": 1,
        "micro_batch_size": 1,
        "zero": 1,
        "recompute": {"mode": "none"},
    }
    return {"pool": pool, "chunks": chunks} | defaults | values


def document() -> Document:
    """A plan of two unlike pipelines."""
    return {
        "schema": "haplan.plan/v1",
        "model": {"graph": graph_document(model([LLAMA] * 3))},
        "cluster": {"document": dict(load_cluster("hybrid-64").document)},
        "job": {"global_batch_size": 8, "sequence_length": SEQUENCE},
        "schedule": {"kind": "1f1b", "virtual_stages": 1},
        "pipelines": [
            {
                "count": 1,
                "microbatches": 3,
                "stages": [
                    stage("ib", [[0, 2]], tp=2, micro_batch_size=2, embedding=True),
                    stage("roce", [[2, 3]], replicas=2, head=True),
                ],
            },
            {
                "count": 1,
                "microbatches": 2,
                "stages": [stage("roce", [[0, 3]], embedding=True, head=True)],
            },
        ],
    }


def test_a_plan_runs_and_equals_one_process() -> None:
    report = runner.validate(document())

    assert report["ok"], report["differences"]
    assert report["ranks"] == 5
    assert 0.0 <= report["grad_max_rel_diff"] <= 1e-9
    assert report["traffic_bytes"]["predicted"] == report["traffic_bytes"]["observed"]
    assert set(report["traffic_bytes"]["observed"]) == {"tp", "pp", "dp"}
    assert "widths: hidden 16" in " ".join(report["reductions"])
    assert any("float64" in text for text in report["not_covered"])


def broken(name: str) -> Document:
    plan = copy.deepcopy(document())
    first, second = plan["pipelines"]
    if name == "a layer is missing":
        first["stages"][1]["chunks"] = [[2, 2]]
    elif name == "chunks overlap":
        first["stages"][1]["chunks"] = [[1, 3]]
    elif name == "micro-batches do not add up":
        second["microbatches"] = 3
    elif name == "samples differ between stages":
        first["stages"][1]["replicas"] = 1
    elif name == "two heads":
        first["stages"][0]["head"] = True
    return plan


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("a layer is missing", "/pipelines/0/stages/1/chunks"),
        ("chunks overlap", "/pipelines/0/stages/1/chunks"),
        ("micro-batches do not add up", "/pipelines"),
        ("samples differ between stages", "/pipelines/0/stages/1/micro_batch_size"),
        ("two heads", "/pipelines/0/stages/0/head"),
    ],
)
def test_a_plan_that_contradicts_itself_fails(name: str, field: str) -> None:
    report = runner.validate(broken(name))

    assert not report["ok"]
    assert report["ranks"] == 0
    assert any(text.startswith(field) for text in report["violations"]), report["violations"]
    assert report["differences"] == report["violations"]


def test_all_contradictions_at_once() -> None:
    plan = broken("a layer is missing")
    plan["pipelines"][1]["microbatches"] = 3
    plan["pipelines"][1]["stages"][0]["head"] = False

    violations = runner.validate(plan)["violations"]

    assert len(violations) >= 3


def test_a_plan_without_pipelines_fails() -> None:
    plan = document()
    plan["pipelines"] = []

    report = runner.validate(plan)

    assert not report["ok"]
    assert "must hold a pipeline" in report["violations"][0]


@pytest.mark.parametrize("change", [{"schema": "haplan.plan/v0"}, {"job": {}}, {"model": None}])
def test_what_is_not_a_plan_is_bad_input(change: Document) -> None:
    with pytest.raises(InputError):
        runner.validate(document() | change)


def test_fewer_ranks_than_the_plan_has() -> None:
    report = runner.validate(document(), max_ranks=2)

    assert report["ok"], report["differences"]
    assert report["ranks"] <= 2
    assert any(text.startswith("ranks: 5 became") for text in report["reductions"])
    assert len(report["not_covered"]) > 1


def test_a_run_out_of_time_is_an_error() -> None:
    with pytest.raises(runner.ExecutionError, match=r"within 0\.2 s"):
        runner.validate(document(), timeout_s=0.2)
