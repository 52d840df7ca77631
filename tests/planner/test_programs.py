"""The two linear programs against another solver, and their guarantee against any weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.arrays import FloatArray
from planner.programs import Packing, least_share

COSTS = st.one_of(st.floats(0.1, 1e4), st.just(float("inf")))


@st.composite
def shared_work(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    pools, parts = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    cost = [draw(st.lists(COSTS, min_size=parts, max_size=parts)) for _ in range(pools)]
    chips = draw(st.lists(st.integers(1, 10_000), min_size=pools, max_size=pools))
    return np.array(cost), np.array(chips, dtype=np.float64)


def solved(cost: FloatArray, chips: FloatArray) -> float:
    """``min x`` with a variable for every pool and part that can meet."""
    pools, parts = cost.shape
    able = np.isfinite(cost).ravel()
    load = np.zeros((pools, pools * parts + 1))
    share = np.zeros((parts, pools * parts + 1))
    for k in range(pools):
        load[k, k * parts : (k + 1) * parts] = np.where(np.isfinite(cost[k]), cost[k], 0.0)
        share[:, k * parts : (k + 1) * parts] = np.eye(parts)
    load[:, -1] = -chips
    limits = [*((0.0, None if ok else 0.0) for ok in able), (0.0, None)]
    goal = np.append(np.zeros(pools * parts), 1.0)
    answer = linprog(
        goal, A_ub=load, b_ub=np.zeros(pools), A_eq=share, b_eq=np.ones(parts), bounds=limits
    )
    return float(answer.fun or 0.0) if answer.success else float("inf")


@given(shared_work())
def test_the_least_share_is_that_of_another_solver_and_never_above(
    work: tuple[FloatArray, FloatArray],
) -> None:
    found, truth = least_share(*work), solved(*work)

    assert found == pytest.approx(truth, rel=1e-5)
    assert found <= truth * (1 + 1e-6)


@given(shared_work())
def test_parts_of_equal_cost_are_counted(work: tuple[FloatArray, FloatArray]) -> None:
    cost, chips = work

    twice = least_share(np.concatenate([cost, cost], axis=1), chips)

    assert twice == pytest.approx(2 * least_share(cost, chips), rel=1e-5)


def test_packing_follows_the_gains() -> None:
    packing = Packing.of(np.array([[2, 0], [0, 4], [1, 1]]), np.array([8.0, 8.0]))

    assert packing.best(np.array([1.0, 1.0, 0.0]))[0] == pytest.approx(6.0)
    value, copies = packing.best(np.array([1.0, 1.0, 10.0]))
    assert value == pytest.approx(80.0)
    assert copies.tolist() == pytest.approx([0.0, 0.0, 8.0])
