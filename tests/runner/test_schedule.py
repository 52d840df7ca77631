"""The runner's schedules against those that the cost model simulates."""

import pytest

from costmodel.schedules.kind import Phase
from costmodel.schedules.passes import passes_of
from costmodel.schedules.registry import schedules
from planner.targets.runner import EXECUTED_SCHEDULES
from runner.schedule import INPUT, SCHEDULES, WEIGHT, WHOLE

SHAPES = [(1, 1), (1, 4), (2, 2), (2, 6), (3, 3), (4, 8)]
"""Stages and micro-batches."""

PHASES = {
    (False, WHOLE): Phase.FORWARD,
    (True, WHOLE): Phase.BACKWARD,
    (True, INPUT): Phase.INPUT,
    (True, WEIGHT): Phase.WEIGHT,
}


def test_every_schedule_that_is_executed_has_an_order() -> None:
    assert set(SCHEDULES) == set(EXECUTED_SCHEDULES)
    assert set(SCHEDULES) <= set(schedules())


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize(("stages", "microbatches"), SHAPES)
def test_order_with_one_chunk(kind: str, stages: int, microbatches: int) -> None:
    for stage in range(stages):
        passes = SCHEDULES[kind](stages, stage, microbatches, 1)
        ours = [(PHASES[p.backward, p.part], p.chunk, p.microbatch) for p in passes]
        wanted = passes_of(schedules()[kind], stages, stage, microbatches, 1)

        assert ours == [(p.phase, p.chunk, p.microbatch) for p in wanted]


@pytest.mark.parametrize("chunks", [2, 3])
@pytest.mark.parametrize(("stages", "microbatches"), SHAPES)
def test_order_with_several_chunks(stages: int, microbatches: int, chunks: int) -> None:
    expected = schedules()["interleaved"].interleaving
    assert expected is not None

    for stage in range(stages):
        passes = SCHEDULES["interleaved"](stages, stage, microbatches, chunks)
        ours = [(p.backward, p.chunk, p.microbatch) for p in passes]

        assert ours == list(expected.order(stages, stage, microbatches, chunks))
