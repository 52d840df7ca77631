"""What every registered schedule has to hold, before its author writes a test."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from costmodel.errors import UnknownNameError
from costmodel.schedules.kind import FloatArray, ScheduleKind
from costmodel.schedules.registry import schedule, schedules
from tests.schedules.slow_twin import event_simulation

KINDS = tuple(schedules().values())
Case = tuple[FloatArray, FloatArray, FloatArray, FloatArray, int]


@st.composite
def pipelines(draw: st.DrawFn) -> Case:
    p = draw(st.integers(1, 8))
    seconds = st.floats(0.01, 10.0)
    transfer = st.floats(0.0, draw(st.sampled_from([0.0, 0.1, 20.0])))
    return (
        draw(arrays(np.float64, p, elements=seconds)),
        draw(arrays(np.float64, p, elements=seconds)),
        draw(arrays(np.float64, p - 1, elements=transfer)),
        draw(arrays(np.float64, p - 1, elements=transfer)),
        draw(st.integers(1, 24)),
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@given(case=pipelines())
def test_simulation_equals_its_slow_twin(kind: ScheduleKind, case: Case) -> None:
    makespan, ends = kind.simulate(*case)
    slow_makespan, slow_ends = event_simulation(kind, *case)

    assert makespan == pytest.approx(slow_makespan, rel=1e-12)
    assert ends.tolist() == pytest.approx(slow_ends, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@given(case=pipelines())
def test_lower_bound_never_exceeds_the_simulation(kind: ScheduleKind, case: Case) -> None:
    assert kind.lower_bound(*case) <= kind.simulate(*case)[0] * (1 + 1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@given(case=pipelines())
def test_one_more_microbatch_never_ends_earlier(kind: ScheduleKind, case: Case) -> None:
    forward, backward, up, down, m = case

    assert kind.simulate(forward, backward, up, down, m + 1)[0] >= kind.simulate(*case)[0] - 1e-12


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@pytest.mark.parametrize("p", range(1, 6))
@pytest.mark.parametrize("m", range(1, 9))
def test_in_flight_counts_the_passes_of_the_order(kind: ScheduleKind, p: int, m: int) -> None:
    for stage in range(p):
        held = peak = 0
        for is_backward, _ in kind.order(p, stage, m):
            held += -1 if is_backward else 1
            peak = max(peak, held)

        assert kind.in_flight(p, stage, m) == peak
        assert sorted(kind.order(p, stage, m)) == [(b, k) for b in (False, True) for k in range(m)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@pytest.mark.parametrize("p", [1, 2, 5, 8])
@pytest.mark.parametrize("m", [1, 3, 8, 40])
def test_equal_stages_take_the_textbook_time(kind: ScheduleKind, p: int, m: int) -> None:
    ones, none = np.ones(p), np.zeros(p - 1)
    expected = (m + p - 1) * 3.0

    assert kind.simulate(ones, 2 * ones, none, none, m)[0] == pytest.approx(expected)
    assert kind.closed_form(ones, 2 * ones, none, none, m) == pytest.approx(expected)
    assert kind.lower_bound(ones, 2 * ones, none, none, m) == pytest.approx(expected)


def test_unknown_schedule_lists_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="1f1b"):
        schedule("1f1c")


def test_hand_drawn_1f1b() -> None:
    """p = 2, m = 2, U = (3, 1), F = B: stage 0 is F F B B = 6 s and never waits."""
    forward = np.array([1.5, 0.5])

    makespan, ends = schedule("1f1b").simulate(forward, forward, np.zeros(1), np.zeros(1), 2)

    assert makespan == pytest.approx(6.0)
    assert ends.tolist() == pytest.approx([6.0, 4.0])
