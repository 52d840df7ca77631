"""What follows the last backward."""

from dataclasses import replace

import pytest

from costmodel.batch.rows import rows_of
from costmodel.batch.score import score_rows
from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.layout.uniform import Uniform
from costmodel.layout.values import StageOption
from costmodel.problem import Problem
from costmodel.step import evaluate
from tests.costmodel.cases import even_layout, problem

PIECE_S = 1e-4


def step_s(zero: int, replicas: int, piece_s: float, stages: int = 1) -> float:
    option = StageOption(pool="p", replicas=replicas, zero=zero)
    return evaluate(slicing(piece_s), even_layout(option, stages, 4)).step_time_s


def slicing(piece_s: float) -> Problem:
    efficiency = replace(DEFAULT_EFFICIENCY, gather_piece_s=piece_s)
    return replace(problem(batch=4 * 8), efficiency=efficiency)


@pytest.mark.parametrize(("zero", "counts"), [(0, False), (1, True), (2, True), (3, False)])
def test_slices_are_gathered_for_every_layer_and_other_rank(zero: int, counts: bool) -> None:
    more = step_s(zero, 8, PIECE_S) - step_s(zero, 8, 0.0)
    assert more == pytest.approx(PIECE_S * 32 * 7 if counts else 0.0)


def test_one_replica_gathers_nothing_and_a_stage_only_its_layers() -> None:
    assert step_s(1, 1, PIECE_S) == step_s(1, 1, 0.0)
    more = step_s(1, 8, PIECE_S, stages=4) - step_s(1, 8, 0.0, stages=4)
    assert more == pytest.approx(PIECE_S * 8 * 7, rel=0.05)


def test_many_layouts_at_once_gather_slices_too() -> None:
    rows = rows_of([Uniform(pp=2, dp=8, zero=zero, pools="p") for zero in (0, 1, 3)])
    with_slices, without = (
        score_rows(slicing(piece_s), "p", rows).step_s for piece_s in (PIECE_S, 0.0)
    )
    assert (with_slices - without)[[0, 2]] == pytest.approx(0.0)
    assert (with_slices - without)[1] == pytest.approx(PIECE_S * 16 * 7, rel=0.05)
