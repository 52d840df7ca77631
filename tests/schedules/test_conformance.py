"""What every registered schedule has to hold, before its author writes a test."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from costmodel.errors import UnknownNameError
from costmodel.schedules.kind import FloatArray, Phase, ScheduleKind
from costmodel.schedules.passes import passes_of, routes_of
from costmodel.schedules.registry import schedule, schedules
from tests.schedules.slow_twin import event_simulation

KINDS = tuple(schedules().values())
Case = tuple[FloatArray, FloatArray, FloatArray, FloatArray, int]


def takes(kind: ScheduleKind, p: int, m: int) -> bool:
    """Whether the schedule runs with so many stages and micro-batches."""
    return kind.program is None or kind.program.refusal(p, m) is None


SHAPES = [
    (kind, p, m) for kind in KINDS for p in range(1, 7) for m in range(1, 15) if takes(kind, p, m)
]


def legal(kind: ScheduleKind, case: Case) -> Case:
    """The case itself, or with a stage less, or as many more micro-batches, as it takes."""
    forward, backward, up, down, m = case
    if not any(takes(kind, len(forward), k) for k in range(1, 99)):
        if len(forward) == 1:
            return case[0].repeat(2), case[1].repeat(2), np.zeros(1), np.zeros(1), 4
        forward, backward, up, down = forward[1:], backward[1:], up[1:], down[1:]
    return (
        forward,
        backward,
        up,
        down,
        next(k for k in range(m, 99) if takes(kind, len(forward), k)),
    )


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
    case = legal(kind, case)
    makespan, ends = kind.simulate(*case)
    slow_makespan, slow_ends = event_simulation(kind, *case)

    assert makespan == pytest.approx(slow_makespan, rel=1e-12)
    assert ends.tolist() == pytest.approx(slow_ends, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@given(case=pipelines())
def test_lower_bound_never_exceeds_the_simulation(kind: ScheduleKind, case: Case) -> None:
    case = legal(kind, case)

    assert kind.lower_bound(*case) <= kind.simulate(*case)[0] * (1 + 1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@given(case=pipelines())
def test_one_more_microbatch_never_ends_earlier(kind: ScheduleKind, case: Case) -> None:
    case = legal(kind, case)
    forward, backward, up, down, m = case
    more = next(k for k in (m + 1, m + 2) if takes(kind, len(forward), k))

    assert kind.simulate(forward, backward, up, down, more)[0] >= kind.simulate(*case)[0] - 1e-12


@pytest.mark.parametrize(("kind", "p", "m"), SHAPES, ids=lambda x: getattr(x, "name", x))
def test_in_flight_counts_the_passes_of_the_order(kind: ScheduleKind, p: int, m: int) -> None:
    chunks = kind.program.chunks if kind.program else 1
    for stage in range(p):
        held = peak = 0
        for one in passes_of(kind, p, stage, m, chunks):
            held += {Phase.FORWARD: 1, Phase.INPUT: 0}.get(one.phase, -1)
            peak = max(peak, held)

        assert held == 0
        assert kind.in_flight(p, stage, m) == peak


@pytest.mark.parametrize(("kind", "p", "m"), SHAPES, ids=lambda x: getattr(x, "name", x))
def test_every_micro_batch_is_computed_once_at_every_place(
    kind: ScheduleKind, p: int, m: int
) -> None:
    chunks = kind.program.chunks if kind.program else 1
    routes = routes_of(kind, p, chunks)
    wanted = sorted(
        (stage, nth, k)
        for way, route in enumerate(routes)
        for stage, nth in route
        for k in range(way * m // len(routes), (way + 1) * m // len(routes))
    )
    passes = [(i, one) for i in range(p) for one in passes_of(kind, p, i, m, chunks)]

    def ran(*phases: Phase) -> list[tuple[int, int, int]]:
        return sorted((i, x.chunk, x.microbatch) for i, x in passes if x.phase in phases)

    assert ran(Phase.FORWARD) == wanted
    assert ran(Phase.BACKWARD, Phase.INPUT) == wanted
    assert ran(Phase.BACKWARD, Phase.WEIGHT) == wanted


PLAIN = tuple(kind for kind in KINDS if kind.program is None)


@pytest.mark.parametrize("kind", PLAIN, ids=lambda k: k.name)
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
