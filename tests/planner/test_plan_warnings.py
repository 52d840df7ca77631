"""What a plan warns of, and searches that must not lose to their own parts."""

from dataclasses import replace

import pytest

from costmodel.hardware.read import load_cluster
from costmodel.layout.rules import warnings
from costmodel.model.read import load_model
from planner import Job, plan
from planner.spine import beaten
from planner.values import Baseline

JOB = Job(global_batch_size=256, sequence_length=4096)


def test_a_plan_warns_as_an_estimate_of_its_layout_does() -> None:
    """Chips of two vendors that sum gradients need a library that spans them."""
    found = plan(load_model("llama3-8b"), load_cluster("ascend910b-c500-1024"), JOB, target="any")

    assert found.layout is not None
    assert set(warnings(found.problem, found.layout)) <= set(found.warnings)
    assert any("huawei" in warning and "metax" in warning for warning in found.warnings)


def test_a_search_that_the_clock_ended_says_so() -> None:
    found = plan(load_model("llama3-70b"), load_cluster("hybrid-64"), JOB, time_limit_s=0.001)

    assert not found.reproducible
    assert any("time limit" in warning for warning in found.warnings)


@pytest.mark.parametrize("model", ["llama3-8b", "llama3-70b", "mixtral-8x7b"])
def test_a_free_choice_is_no_worse_than_any_fixed_one(model: str) -> None:
    """Within 2 %: the search is a heuristic on problems of this size."""

    def step_time_s(job: Job) -> float:
        found = plan(load_model(model), load_cluster("hybrid-64"), job, time_limit_s=60.0)
        return found.evaluation.step_time_s if found.evaluation else float("inf")

    free = step_time_s(JOB)
    fixed = [replace(JOB, micro_batch_size=size) for size in (1, 2, 4)]
    fixed += [replace(JOB, recompute=mode) for mode in ("none", "full")]
    assert free <= 1.02 * min(step_time_s(job) for job in fixed)


def test_a_baseline_that_beats_the_plan_is_named() -> None:
    faster = Baseline(name="uniform", step_time_s=0.9, speedup=0.9)
    slower = Baseline(name="single pool", step_time_s=2.0, speedup=2.0)
    unfit = Baseline(name="amp", step_time_s=None, speedup=None)

    assert len(beaten((faster, slower, unfit))) == 1
    assert "uniform" in beaten((faster,))[0]
