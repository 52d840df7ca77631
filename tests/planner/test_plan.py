"""Whole plans on bundled models and clusters."""

import json
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from costmodel.errors import InputError, UnknownNameError
from costmodel.hardware.read import load_cluster
from costmodel.layout.rules import violations
from costmodel.model.read import load_model
from costmodel.step import evaluate
from planner import Job, Plan, explain, plan, read_plan
from planner.values import Document
from tests.planner.tiny import tiny_model

JOB = Job(global_batch_size=256, sequence_length=4096)
CASES = (
    ("llama3-8b", "hybrid-64", JOB),
    ("llama3-70b", "hybrid-64", JOB),
    ("llama3-70b", "a100-v100-256", JOB),
    ("llama3-70b", "a100-v100-256", replace(JOB, precision="fp16")),
    ("mixtral-8x7b", "hybrid-64", JOB),
)
CASE_NAMES = [f"{model}-{cluster}-{job.precision}" for model, cluster, job in CASES]


@cache
def planned(case: int) -> Plan:
    model, cluster, job = CASES[case]
    return plan(load_model(model), load_cluster(cluster), job, time_limit_s=120.0)


@cache
def document(case: int) -> Document:
    return json.loads(json.dumps(planned(case).document()))


@pytest.fixture(params=range(len(CASES)), ids=CASE_NAMES)
def case(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_plan_obeys_every_rule_of_layouts(case: int) -> None:
    found = planned(case)

    assert found.layout is not None
    assert violations(found.problem, found.layout) == ()
    assert found.layout.samples == CASES[case][2].global_batch_size


def test_prediction_is_the_evaluators(case: int) -> None:
    found = planned(case)
    assert found.layout is not None
    assert found.evaluation is not None

    again = evaluate(found.problem, found.layout)

    assert again.fits
    assert found.step_time_s == again.step_time_s
    assert sum(found.evaluation.breakdown.values()) == pytest.approx(found.step_time_s)


def test_bound_and_baselines_are_on_the_right_side(case: int) -> None:
    found = planned(case)
    assert found.bound is not None

    assert 0 < found.bound.step_time_s <= found.step_time_s
    assert found.bound.gap == pytest.approx(found.step_time_s / found.bound.step_time_s - 1)
    for baseline in found.baselines:
        if baseline.step_time_s is not None:
            assert baseline.step_time_s >= found.step_time_s * (1 - 1e-9)
            assert baseline.speedup == pytest.approx(baseline.step_time_s / found.step_time_s)


def test_document_reads_back_to_the_same_plan(case: int) -> None:
    again = read_plan(document(case))

    assert again.layout == planned(case).layout
    assert again.nodes == planned(case).nodes
    assert again.id == planned(case).id == document(case)["id"]
    assert again.document() == document(case)


def test_every_node_holds_at_most_its_chips(case: int) -> None:
    found = planned(case)
    assert found.layout is not None
    pools = {pool.name: pool for pool in found.problem.cluster.pools}
    load: Counter[tuple[str, int]] = Counter()
    for pipeline, placed in zip(found.layout.pipelines, found.nodes, strict=True):
        for stage, copies in zip(pipeline.stages, placed, strict=True):
            option, pool = stage.option, pools[stage.option.pool]
            assert len(copies) == pipeline.count
            for nodes in copies:
                assert option.num_chips % len(nodes) == 0
                load.update({(pool.name, node): option.num_chips // len(nodes) for node in nodes})

    for (name, node), chips in load.items():
        assert 0 <= node < pools[name].nodes
        assert chips <= pools[name].chips_per_node
    used = sum(p.count * s.option.num_chips for p in found.layout.pipelines for s in p.stages)
    assert sum(load.values()) == used
    assert sum(document(case)["idle"].values()) == found.problem.cluster.num_chips - used


def test_explanation_tries_changes_and_draws_the_schedule(case: int) -> None:
    found = planned(case)
    explained = explain(found)
    assert found.layout is not None
    assert explained.bottleneck is not None

    rows = explained.timeline.splitlines()[1:]
    stages = found.layout.pipelines[explained.bottleneck.pipeline].stages
    assert len(rows) == len(stages)
    assert len({len(row) for row in rows}) == 1
    assert all(change.relative is not None or change.reason for change in explained.changes)
    assert json.loads(json.dumps(explained.document()))["summary"] == list(explained.summary)


def test_small_moves_do_not_beat_the_plan(case: int) -> None:
    changes = explain(planned(case)).changes

    assert all(c.relative is None or c.relative > -0.02 for c in changes)


def test_same_request_gives_the_same_id() -> None:
    model, cluster, job = CASES[0]

    again = plan(load_model(model), load_cluster(cluster), job, time_limit_s=120.0)

    assert again.reproducible
    assert again.id == planned(0).id


def test_search_and_bound_are_not_part_of_the_id() -> None:
    found = planned(0)
    assert found.bound is not None

    other = replace(found, bound=replace(found.bound, method="other"), warnings=("new",))

    assert other.id == found.id


def test_infeasible_plan_says_what_is_missing_and_what_would_help() -> None:
    cluster = load_cluster("hybrid-64")
    small = replace(cluster, pools=(replace(cluster.pools[0], nodes=1),), between=())

    found = plan(load_model("llama3-70b"), small, Job(global_batch_size=8, sequence_length=4096))

    assert found.status == "infeasible"
    assert found.layout is None
    assert found.shortfall is not None
    assert found.shortfall.constraint == "memory"
    assert found.shortfall.missing_bytes > 0
    assert any("more chips" in change for change in found.shortfall.changes)
    assert read_plan(json.loads(json.dumps(found.document()))).shortfall == found.shortfall
    assert "GiB" in " ".join(explain(found).summary)


def test_one_chip_plan_is_optimal() -> None:
    cluster = load_cluster("hybrid-64")
    one = replace(cluster.pools[0], nodes=1, chips_per_node=1, scale_up_domain=1)
    job = Job(global_batch_size=4, sequence_length=1024, micro_batch_size=1, recompute="none")

    found = plan(tiny_model(3), replace(cluster, pools=(one,), between=()), job)

    assert found.status == "optimal"
    assert found.bound is not None
    assert found.bound.gap == 0.0


def test_unknown_target_and_foreign_document_are_refused() -> None:
    model, cluster, job = CASES[0]
    with pytest.raises(UnknownNameError, match="runner"):
        plan(load_model(model), load_cluster(cluster), job, target="runer")
    with pytest.raises(InputError, match=r"haplan\.plan/v1"):
        read_plan({"schema": "other"})
    with pytest.raises(InputError, match="whole plan"):
        read_plan({"schema": "haplan.plan/v1"})
