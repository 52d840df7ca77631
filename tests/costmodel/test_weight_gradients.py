"""Which part of a backward makes weight gradients, and what stays in memory for it."""

from dataclasses import replace

import numpy as np
import pytest

from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.layout.values import StageOption
from costmodel.stage.costs import stage_table
from costmodel.stage.table import StageTable
from tests.layout.edits import CLUSTER, DENSE, SPARSE
from tests.layout.problems import problem

MODES = ("none", "selective", "full")
OPTIONS = tuple(
    StageOption(pool="a", tp=tp, ep=1, recompute=mode, sequence_parallel=tp > 1)
    for tp in (1, 2)
    for mode in MODES
)


@pytest.fixture(params=[DENSE, SPARSE], ids=["dense", "sparse"])
def table(request: pytest.FixtureRequest) -> StageTable:
    job = problem(request.param, CLUSTER, global_batch_size=4).job
    return stage_table(request.param, CLUSTER, job, OPTIONS)


def test_weight_gradients_are_a_part_of_the_backward(table: StageTable) -> None:
    for terms in (table.layers, table.head, table.embedding):
        assert (terms.weight_gradient_s >= 0.0).all()
        assert (terms.weight_gradient_s <= terms.backward_s * (1 + 1e-12)).all()
    whole = table.layers.weight_gradient_s[:, -1]
    assert (whole > 0.0).all()
    assert (whole < table.layers.forward_s[:, -1]).all()


def test_recomputation_adds_nothing_to_them(table: StageTable) -> None:
    whole = table.layers.weight_gradient_s[:, -1].reshape(2, len(MODES))

    assert np.ptp(whole, axis=1) == pytest.approx(0.0, abs=1e-12)


def test_what_they_need_is_kept_whatever_is_recomputed(table: StageTable) -> None:
    held = table.layers.deferred_bytes[:, -1].reshape(2, len(MODES))
    kept = table.layers.activation_bytes[:, -1].reshape(2, len(MODES))

    assert np.ptp(held, axis=1) == pytest.approx(0.0, abs=1e-6)
    assert held[:, 0] == pytest.approx(kept[:, 0])
    assert (kept[:, 2] < held[:, 2]).all()


def test_frozen_weights_have_none() -> None:
    job = problem(DENSE, CLUSTER, global_batch_size=4).job
    frozen = replace(DEFAULT_EFFICIENCY, backward_products=1.0)

    assert not stage_table(DENSE, CLUSTER, job, OPTIONS, frozen).layers.weight_gradient_s.any()
