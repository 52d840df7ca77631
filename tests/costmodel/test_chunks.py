"""Interleaved stages in the evaluator: chunks add up, the bubble shrinks, memory counts chunks."""

from dataclasses import replace

import pytest

from costmodel.errors import InputError
from costmodel.evaluation import Evaluation
from costmodel.frame import stage_costs
from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from costmodel.stage.chunks import ChunkCosts, chunk_costs, kept
from costmodel.stage.costs import stage_table
from costmodel.step import evaluate
from tests.costmodel.cases import problem

PROBLEM = problem(batch=32)
OPTION = StageOption(pool="p", tp=8)


def interleaved(v: int, kind: str = "interleaved", *, ends: bool = True) -> Layout:
    """Llama-3-8B: four stages of eight layers in v chunks each; without ``ends`` layers alone."""
    size = 8 // v
    stages = tuple(
        Stage(
            option=OPTION,
            chunks=tuple(((k * 4 + i) * size, (k * 4 + i + 1) * size) for k in range(v)),
            embedding=ends and i == 0,
            head=ends and i == 3,
        )
        for i in range(4)
    )
    pipelines = (Pipeline(stages=stages, microbatches=32),)
    return Layout(pipelines=pipelines, schedule=Schedule(kind=kind, virtual_stages=v))


def bubble(evaluation: Evaluation) -> float:
    return evaluation.breakdown["bubble"]


def test_chunks_add_up_to_their_stage() -> None:
    table = stage_table(PROBLEM.model, PROBLEM.cluster, PROBLEM.job, [OPTION])
    for stage in interleaved(2).pipelines[0].stages:
        whole, parts = stage_costs(table, 0, stage), chunk_costs(table, 0, stage)

        assert sum(part.forward_s for part in parts) == pytest.approx(whole.forward_s)
        assert sum(part.backward_s for part in parts) == pytest.approx(whole.backward_s)
        assert sum(p.activation_bytes for p in parts) == pytest.approx(whole.activation_bytes)


def test_two_chunks_a_stage_halve_the_bubble() -> None:
    one, two = (evaluate(PROBLEM, interleaved(v, ends=False)) for v in (1, 2))

    assert bubble(two) == pytest.approx(bubble(one) / 2)
    assert two.breakdown["compute"] == pytest.approx(one.breakdown["compute"])
    assert sum(two.breakdown.values()) == pytest.approx(two.step_time_s, rel=1e-12)


def test_the_first_stage_keeps_the_published_share_more() -> None:
    """Megatron's estimate: activations of the first stage grow by 1 + (p - 1) / (p v)."""
    one, two = evaluate(PROBLEM, interleaved(1)), evaluate(PROBLEM, interleaved(2))
    growth = two.stages[0][0].memory.activations / one.stages[0][0].memory.activations

    assert two.stages[0][0].in_flight == 2 * 3 + 4 + 1
    assert growth == pytest.approx(1 + 3 / (4 * 2), rel=0.02)


def test_unequal_chunks_peak_where_the_large_ones_meet() -> None:
    small, large = (
        ChunkCosts(forward_s=1.0, backward_s=2.0, activation_bytes=size) for size in (1.0, 100.0)
    )
    order = ((False, 0, 0), (False, 1, 0), (True, 1, 0), (False, 0, 1), (False, 0, 2))

    got = kept(order, (small, large))

    assert (got.chunks, got.activation_bytes) == (3, 101.0)


def test_a_schedule_without_chunks_refuses_them() -> None:
    with pytest.raises(InputError, match="use the schedule interleaved"):
        evaluate(PROBLEM, interleaved(2, kind="1f1b"))


def test_one_chunk_a_stage_is_1f1b() -> None:
    plain = interleaved(1, kind="1f1b")

    assert evaluate(PROBLEM, interleaved(1)).step_time_s == evaluate(PROBLEM, plain).step_time_s
    assert replace(plain, schedule=Schedule()) == plain
