"""Plans with several chunks a stage: asked for, read back, explained; and what bounds them."""

from dataclasses import replace
from functools import cache

import pytest

from costmodel.hardware.read import load_cluster
from costmodel.model.read import load_model
from costmodel.problem import Problem
from costmodel.step import evaluate
from planner import Job, explain, plan
from planner.document import read_layout
from planner.interleaved_search import whole_bound
from planner.pins import Pins
from planner.pricing import priced
from planner.space import declare
from planner.values import Bound, Plan
from planner.wishes import Wishes

JOB = Job(global_batch_size=256, sequence_length=4096)


@cache
def planned() -> Plan:
    return plan(
        load_model("llama3-8b"),
        load_cluster("hybrid-64"),
        replace(JOB, schedule="interleaved"),
        target="megatron",
        time_limit_s=20.0,
        wishes=Wishes(pins=Pins(chunks=frozenset({2}), stages=frozenset({2}))),
    )


def test_the_plan_has_the_chunks_and_stages_that_were_pinned() -> None:
    layout = planned().layout

    assert layout is not None
    assert (layout.schedule.kind, layout.schedule.virtual_stages) == ("interleaved", 2)
    assert {len(pipeline.stages) for pipeline in layout.pipelines} == {2}


def test_its_time_is_the_evaluator_s_and_above_its_bound() -> None:
    found = planned()

    assert found.layout is not None
    assert found.bound is not None
    assert found.step_time_s == pytest.approx(evaluate(found.problem, found.layout).step_time_s)
    assert 0.0 < found.bound.step_time_s <= found.step_time_s
    assert read_layout(found.document()) == found.layout


def test_it_can_be_explained_with_its_layers_moved() -> None:
    changes = explain(planned()).changes

    assert any("one layer" in change.what and change.relative is not None for change in changes)


BOUND = Bound(step_time_s=5.0, gap=0.2, method="ramp")


@pytest.mark.parametrize(
    ("interleaved_s", "expected_s"), [(4.0, 4.0), (5.5, 5.0), (float("inf"), 5.0)]
)
def test_the_lesser_bound_counts(interleaved_s: float, expected_s: float) -> None:
    model, cluster = load_model("llama3-8b"), load_cluster("hybrid-64")
    space = declare(model, cluster, JOB, target="any", evaluator="1")
    instance = priced(Problem(model=model, cluster=cluster, job=JOB), space)
    found = whole_bound(instance, BOUND, interleaved_s, 6.0)

    assert found.step_time_s == expected_s
    assert found.gap == pytest.approx(6.0 / expected_s - 1.0)
