"""Estimates of schedules that run weight gradients apart: terms, time and memory."""

from typing import Any

import pytest

from costmodel.estimation import Estimate, estimate
from costmodel.schedules.registry import schedules
from tests.estimate.test_estimate import adds_up
from tests.layout.problems import (
    DENSE_CONFIG,
    SPARSE_CONFIG,
    cluster,
    model,
    pool_document,
    problem,
)

DENSE, SPARSE = model(DENSE_CONFIG), model(SPARSE_CONFIG)
CLUSTER = cluster(pool_document("a", 4))


def estimated(graph: Any, kind: str, degrees: str = "tp=2,pp=4,dp=1", **job: Any) -> Estimate:
    where = problem(graph, CLUSTER, global_batch_size=job.pop("batch", 32), **job)
    return estimate(where.model, where.cluster, where.job, f"{degrees},schedule={kind}")


@pytest.mark.parametrize("kind", schedules())
@pytest.mark.parametrize("degrees", ["tp=2,pp=4,dp=1", "pp=2,dp=4,ep=2,zero=2"])
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_terms_add_up(kind: str, degrees: str, recompute: str) -> None:
    graph = SPARSE if "ep" in degrees else DENSE

    adds_up(estimated(graph, kind, f"{degrees},recompute={recompute}").document())


def test_zero_bubble_is_faster_than_1f1b_at_the_same_peak_of_micro_batches() -> None:
    zero, one = (estimated(DENSE, kind).evaluation for kind in ("zero-bubble", "1f1b"))

    assert zero.step_time_s < one.step_time_s
    assert [s.in_flight for s in zero.stages[0]] == [4, 4, 4, 4]
    assert max(s.in_flight for s in one.stages[0]) == 4


def test_weight_gradients_put_off_need_what_was_recomputed() -> None:
    """The first stage puts nothing off; the last one keeps 3 micro-batches between B and W."""
    plain, full = (
        estimated(DENSE, "zero-bubble", f"tp=2,pp=4,dp=1,recompute={mode}").evaluation.stages[0]
        for mode in ("none", "full")
    )

    assert full[0].memory.activations < 0.5 * plain[0].memory.activations
    assert full[3].memory.activations > 0.7 * plain[3].memory.activations


def test_dualpipe_holds_the_model_twice_and_sums_its_gradients() -> None:
    two, one = (estimated(DENSE, kind).evaluation for kind in ("dualpipe", "1f1b"))
    weights = [sum(s.memory.weights for s in found.stages[0]) for found in (two, one)]

    assert weights[0] == pytest.approx(2 * weights[1])
    assert one.breakdown["dp"] == 0.0
    assert two.breakdown["dp"] > 0.0
    assert two.breakdown["bubble"] < one.breakdown["bubble"]


def test_dualpipe_hides_exchanges_of_tokens() -> None:
    degrees = "pp=2,dp=4,ep=4"
    beside, alone = (estimated(SPARSE, kind, degrees).evaluation for kind in ("dualpipe", "1f1b"))

    assert 0.0 <= beside.breakdown["ep"] < 0.7 * alone.breakdown["ep"]


def test_chunks_there_and_back_hold_both_ends_on_the_first_stage() -> None:
    first, *others = estimated(DENSE, "zbv").evaluation.stages[0]

    assert first.stage.embedding
    assert first.stage.head
    assert first.memory.weights > max(s.memory.weights for s in others)
