"""Interleaved 1F1B against a plain-Python twin, its bound and the textbook bubble."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from costmodel.errors import InputError
from costmodel.schedules.interleaved import lower_bound, order, simulate
from costmodel.schedules.kind import FloatArray
from costmodel.schedules.registry import schedule

Case = tuple[FloatArray, FloatArray, FloatArray, FloatArray, int, int]


@st.composite
def pipelines(draw: st.DrawFn) -> Case:
    p, v = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    seconds = st.floats(0.01, 10.0)
    transfer = st.floats(0.0, draw(st.sampled_from([0.0, 0.1, 20.0])))
    return (
        draw(arrays(np.float64, p * v, elements=seconds)),
        draw(arrays(np.float64, p * v, elements=seconds)),
        draw(arrays(np.float64, p * v - 1, elements=transfer)),
        draw(arrays(np.float64, p * v - 1, elements=transfer)),
        p * draw(st.integers(1, 4)),
        v,
    )


def stage_passes(p: int, i: int, m: int, v: int) -> list[tuple[bool, int, int]]:
    """The published order, written as lists: warm-up, one forward and one backward, drain."""
    groups = range(0, m, p)
    ahead = [(False, n, k) for g in groups for n in range(v) for k in range(g, g + p)]
    back = [(True, n, k) for g in groups for n in reversed(range(v)) for k in range(g, g + p)]
    warm = min(m * v, 2 * (p - i - 1) + (v - 1) * p)
    pairs = zip(ahead[warm:], back, strict=False)
    return [*ahead[:warm], *(x for pair in pairs for x in pair), *back[m * v - warm :]]


def slow_twin(case: Case) -> tuple[float, list[float]]:
    forward, backward, up, down, m, v = case
    p = len(forward) // v
    todo = [stage_passes(p, i, m, v) for i in range(p)]
    ended: dict[tuple[bool, int, int], float] = {}
    clock = [0.0] * p
    while any(todo):
        for i in range(p):
            while todo[i]:
                is_backward, nth, k = todo[i][0]
                c = nth * p + i
                source = _source(is_backward, c, k, p * v)
                if source is not None and source not in ended:
                    break
                hop = 0.0
                if source is not None and source[1] != c:
                    hop = float(down[c] if is_backward else up[c - 1])
                ready = 0.0 if source is None else ended[source] + hop
                duration = float(backward[c] if is_backward else forward[c])
                clock[i] = max(clock[i], ready) + duration
                ended[is_backward, c, k] = clock[i]
                todo[i].pop(0)
    return max(clock), clock


def _source(is_backward: bool, c: int, k: int, chunks: int) -> tuple[bool, int, int] | None:
    if not is_backward:
        return None if c == 0 else (False, c - 1, k)
    return (False, c, k) if c == chunks - 1 else (True, c + 1, k)


@given(case=pipelines())
def test_simulation_equals_its_slow_twin(case: Case) -> None:
    makespan, ends = simulate(*case)
    slow_makespan, slow_ends = slow_twin(case)

    assert makespan == pytest.approx(slow_makespan, rel=1e-12)
    assert ends.tolist() == pytest.approx(slow_ends, rel=1e-12)


@given(case=pipelines())
def test_lower_bound_never_exceeds_the_simulation(case: Case) -> None:
    assert lower_bound(*case) <= simulate(*case)[0] * (1 + 1e-12)


@pytest.mark.parametrize(("p", "v"), [(1, 2), (2, 2), (4, 3), (5, 2)])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_order_is_the_published_one(p: int, v: int, groups: int) -> None:
    for i in range(p):
        assert list(order(p, i, p * groups, v)) == stage_passes(p, i, p * groups, v)


@pytest.mark.parametrize(("p", "v", "m"), [(2, 2, 4), (4, 2, 8), (4, 3, 16), (8, 4, 8)])
def test_equal_chunks_have_a_bubble_divided_by_v(p: int, v: int, m: int) -> None:
    """(m + (p - 1) / v) U with chunks of U / v each."""
    ones, none = np.ones(p * v), np.zeros(p * v - 1)

    makespan, _ = simulate(ones, 2 * ones, none, none, m, v)

    assert makespan == pytest.approx((m + (p - 1) / v) * 3.0 * v)


@pytest.mark.parametrize(("p", "v", "m"), [(4, 2, 8), (4, 3, 16), (8, 2, 8), (3, 2, 3)])
def test_chunks_in_flight_are_the_warm_up_and_one(p: int, v: int, m: int) -> None:
    for i in range(p):
        held = peak = 0
        for is_backward, _, _ in order(p, i, m, v):
            held += -1 if is_backward else 1
            peak = max(peak, held)

        assert peak == min(m * v, 2 * (p - i - 1) + (v - 1) * p + 1)


def test_broken_groups_name_the_nearest_counts() -> None:
    with pytest.raises(InputError, match="use 8 or 12 micro-batches"):
        order(4, 0, 10, 2)


def test_one_chunk_per_stage_is_1f1b() -> None:
    assert schedule("interleaved").order(4, 1, 7) == schedule("1f1b").order(4, 1, 7)
