"""Plans with weight gradients apart: searched, bounded by work alone, never said to be proved."""

from dataclasses import replace
from random import Random

import pytest

from costmodel.errors import InputError
from costmodel.job import Job
from costmodel.layout.values import Schedule
from costmodel.problem import Problem
from costmodel.step import evaluate
from planner.bound import work_bound
from planner.pricing import priced
from planner.ramp import bound_for
from planner.space import declare
from planner.spine import plan
from tests.planner.tiny import tiny_cluster, tiny_model

MODEL = tiny_model(8)


def job(schedule: str, *, recompute: str | None = None) -> Job:
    return Job(global_batch_size=16, sequence_length=512, schedule=schedule, recompute=recompute)


@pytest.mark.parametrize("seed", range(4))
def test_plans_keep_their_schedule_and_a_valid_bound(seed: int) -> None:
    cluster = tiny_cluster(Random(seed), 2, 1)
    found = plan(MODEL, cluster, job("zero-bubble"), target="any", time_limit_s=5)
    assert found.layout is not None
    assert found.evaluation is not None
    assert found.bound is not None

    assert found.layout.schedule.kind == "zero-bubble"
    assert found.status == "feasible"
    assert found.bound.method == "work"
    assert found.bound.step_time_s <= found.step_time_s * (1 + 1e-9)
    assert {s.option.recompute for p in found.layout.pipelines for s in p.stages} == {"none"}
    again = evaluate(found.problem, found.layout)
    assert again.step_time_s == pytest.approx(found.step_time_s)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_layouts_are_no_slower_than_with_1f1b(seed: int) -> None:
    """The best 1F1B plan without recomputation, run with weight gradients apart."""
    cluster = tiny_cluster(Random(seed), 2, 1)
    found = plan(MODEL, cluster, job("1f1b", recompute="none"), target="any", time_limit_s=5)
    assert found.layout is not None
    other = replace(found.layout, schedule=Schedule(kind="zero-bubble"))

    assert evaluate(found.problem, other).step_time_s <= found.step_time_s * (1 + 1e-9)


def test_the_bound_of_the_instance_is_the_work_bound() -> None:
    cluster, wanted = tiny_cluster(Random(0), 2, 1), job("zero-bubble")
    space = declare(MODEL, cluster, wanted, target="any", evaluator="x")
    instance = priced(Problem(model=MODEL, cluster=cluster, job=wanted), space)

    bound = bound_for(instance, 1e3, optimal=False)

    assert bound.step_time_s == pytest.approx(work_bound(instance) + instance.floor)


def test_other_schedules_of_lists_are_not_searched() -> None:
    with pytest.raises(InputError, match="zero-bubble"):
        declare(MODEL, tiny_cluster(Random(0), 1, 1), job("zbv"), target="any", evaluator="x")
