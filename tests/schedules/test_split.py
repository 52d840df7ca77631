"""Schedules that run weight gradients apart: any times, published bubbles, memory, legality."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from costmodel.schedules.kind import FloatArray, ScheduleKind
from costmodel.schedules.passes import routes_of
from costmodel.schedules.registry import schedule, schedules
from costmodel.schedules.replay import Seconds, Times, lists_of, replay
from costmodel.schedules.zero_bubble import simulate_split
from costmodel.stage.chunks import ENOUGH, ChunkCosts, kept, kept_apart
from tests.schedules.slow_twin import SlowTwin

LISTED = tuple(kind for kind in schedules().values() if kind.program is not None)
Case = tuple[int, int, Seconds]


def chunks_of(kind: ScheduleKind) -> int:
    assert kind.program is not None
    return kind.program.chunks


@st.composite
def cases(draw: st.DrawFn, kind: ScheduleKind) -> Case:
    """Stages, micro-batches and seconds, all unlike."""
    p = 2 * draw(st.integers(1, 3)) if kind.name == "dualpipe" else draw(st.integers(1, 6))
    m = draw(st.integers(1, 20))
    if "dualpipe" in kind.name:
        m = 2 * p + 2 * m
    places = sum(len(route) for route in routes_of(kind, p, chunks_of(kind)))
    hop = st.floats(0.0, draw(st.sampled_from([0.0, 0.1, 20.0])))

    def drawn(elements: st.SearchStrategy[float]) -> FloatArray:
        return draw(arrays(np.float64, places, elements=elements))

    shares = st.floats(0.05, 0.95)
    forward, backward = drawn(st.floats(0.01, 10.0)), drawn(st.floats(0.01, 10.0))
    none = draw(st.sampled_from([0.0, 1.0]))
    seconds = Seconds(
        forward_s=forward,
        backward_s=backward,
        weight_s=drawn(shares) * backward,
        up_s=drawn(hop),
        down_s=drawn(hop),
        forward_ep_s=none * drawn(shares) * forward,
        backward_ep_s=none * drawn(shares) * backward,
    )
    return p, m, seconds


def run(kind: ScheduleKind, case: Case) -> Times:
    p, m, seconds = case
    return replay(lists_of(kind, p, m, chunks_of(kind)), seconds)


def equal(kind: ScheduleKind, p: int, parts: tuple[float, float, float]) -> Seconds:
    """Equal places without hand-overs: forward, input and weight gradients."""
    places = sum(len(route) for route in routes_of(kind, p, chunks_of(kind)))
    ones, none = np.ones(places), np.zeros(places)
    return Seconds(
        forward_s=parts[0] * ones,
        backward_s=(parts[1] + parts[2]) * ones,
        weight_s=parts[2] * ones,
        up_s=none,
        down_s=none,
        forward_ep_s=none,
        backward_ep_s=none,
    )


@pytest.mark.parametrize("kind", LISTED, ids=lambda k: k.name)
@given(data=st.data())
def test_replay_equals_the_slow_twin(kind: ScheduleKind, data: st.DataObject) -> None:
    p, m, seconds = case = data.draw(cases(kind))
    chunks = chunks_of(kind)
    twin = SlowTwin(kind, routes_of(kind, p, chunks), seconds, m, chunks)

    assert run(kind, case).ends.tolist() == pytest.approx(twin.run()[1], rel=1e-9)


@pytest.mark.parametrize("kind", LISTED, ids=lambda k: k.name)
@given(data=st.data())
def test_nothing_ends_earlier_when_a_pass_takes_longer(
    kind: ScheduleKind, data: st.DataObject
) -> None:
    p, m, seconds = data.draw(cases(kind))
    places = len(seconds.forward_s)
    place, more = data.draw(st.integers(0, places - 1)), data.draw(st.floats(0.0, 5.0))
    added = np.eye(places)[place] * more
    weight = data.draw(st.sampled_from([0.0, 0.5, 1.0])) * added
    slower = replace(
        seconds,
        forward_s=seconds.forward_s + added,
        backward_s=seconds.backward_s + added,
        weight_s=seconds.weight_s + weight,
    )

    assert (run(kind, (p, m, slower)).ends >= run(kind, (p, m, seconds)).ends - 1e-9).all()


@pytest.mark.parametrize("kind", LISTED, ids=lambda k: k.name)
@given(data=st.data())
def test_no_stage_ends_before_its_work_is_done(kind: ScheduleKind, data: st.DataObject) -> None:
    p, m, seconds = data.draw(cases(kind))
    none = np.zeros_like(seconds.forward_s)
    seconds = replace(seconds, forward_ep_s=none, backward_ep_s=none)
    routes = routes_of(kind, p, chunks_of(kind))
    stages = [stage for route in routes for stage, _ in route]
    work = np.bincount(stages, weights=seconds.forward_s + seconds.backward_s, minlength=p)

    ends = run(kind, (p, m, seconds)).ends

    assert (ends >= m // len(routes) * work * (1 - 1e-12)).all()


@given(cases(schedule("zero-bubble")))
def test_quick_simulation_of_zb_h1_equals_the_replay(case: Case) -> None:
    p, m, s = case
    quick = simulate_split(
        s.forward_s, s.backward_s - s.weight_s, s.weight_s, s.up_s[: p - 1], s.down_s[: p - 1], m
    )

    assert quick[1].tolist() == pytest.approx(run(schedule("zero-bubble"), case).ends.tolist())


@given(cases(schedule("zero-bubble")))
def test_zb_h1_is_never_slower_than_1f1b(case: Case) -> None:
    """Where what stage i puts off, i W_i, is no more than the backward of the stages before it."""
    p, m, s = case
    before = np.concatenate(([0.0], np.cumsum((s.backward_s + s.down_s)[:-1])))
    weight = np.minimum(s.weight_s, before / np.maximum(np.arange(p), 1))
    s = replace(s, weight_s=weight)
    one = schedule("1f1b").simulate(s.forward_s, s.backward_s, s.up_s[:-1], s.down_s[:-1], m)

    assert run(schedule("zero-bubble"), (p, m, s)).ends.max() <= one[0] * (1 + 1e-9)


@pytest.mark.parametrize("p", [1, 2, 4, 8])
@pytest.mark.parametrize("m", [16, 40])
@pytest.mark.parametrize("parts", [(1.0, 1.0, 1.0), (1.0, 1.2, 0.8), (1.0, 2.0, 0.5)])
def test_zb_h1_has_the_published_bubble(p: int, m: int, parts: tuple[float, float, float]) -> None:
    """(p - 1)(F + B - 2 W) with B the whole backward; arXiv 2412.19437, table 2."""
    kind = schedule("zero-bubble")
    forward, inputs, weights = parts
    expected = m * sum(parts) + (p - 1) * (forward + inputs - weights)

    assert run(kind, (p, m, equal(kind, p, parts))).ends.max() == pytest.approx(expected)


@pytest.mark.parametrize("p", [2, 4, 8])
@pytest.mark.parametrize("m", [16, 40])
def test_others_have_the_published_bubbles_between_equal_passes(p: int, m: int) -> None:
    """DualPipe (p/2 - 1)(F&B + B - 3 W), one forward chunk a stage for ZB-V; F = B - W = W = 1."""
    expected = {
        "dualpipe": m * 3 + (p / 2 - 1) * (3 + 2 - 3),
        "dualpipev": 2 * m * 3 + (p - 1) * (3 + 2 - 3),
        "zbv": 2 * m * 3 + (p - 1),
    }
    for name, seconds in expected.items():
        kind = schedule(name)

        assert run(kind, (p, m, equal(kind, p, (1, 1, 1)))).ends.max() == pytest.approx(seconds)


@pytest.mark.parametrize(("name", "m"), [("zbv", 16), ("dualpipe", 16), ("dualpipev", 16)])
@pytest.mark.parametrize("p", [2, 4, 8])
def test_closed_forms_are_exact_between_equal_passes(name: str, p: int, m: int) -> None:
    kind = schedule(name)
    ones, none = np.ones(p), np.zeros(p - 1)
    exact = kind.simulate(ones, 2 * ones, none, none, m)[0]

    assert kind.closed_form(ones, 2 * ones, none, none, m) == pytest.approx(exact)


def test_zb_h1_closed_form_is_exact_between_equal_passes() -> None:
    kind, ones, none = schedule("zero-bubble"), np.ones(5), np.zeros(4)

    exact = kind.simulate(ones, 2 * ones, none, none, 9)[0]

    assert kind.closed_form(ones, 2 * ones, none, none, 9) == pytest.approx(exact)


def test_exchanges_hide_beside_other_passes() -> None:
    """A quarter of every pass is exchange: the main part of DualPipe takes three quarters."""
    kind, p, m = schedule("dualpipe"), 4, 400
    seconds = equal(kind, p, (1, 1, 1))
    hidden = replace(
        seconds, forward_ep_s=0.25 * seconds.forward_s, backward_ep_s=0.25 * seconds.backward_s
    )

    share = run(kind, (p, m, hidden)).ends.max() / run(kind, (p, m, seconds)).ends.max()

    assert share == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize(
    ("name", "stages", "microbatches", "fix"),
    [
        ("dualpipe", 3, 12, "use 2 or 4 stages"),
        ("dualpipe", 4, 9, "use 10 micro-batches"),
        ("dualpipe", 4, 6, "use 8 micro-batches"),
        ("dualpipev", 4, 7, "use 8 micro-batches"),
    ],
)
def test_what_dualpipe_does_not_take(name: str, stages: int, microbatches: int, fix: str) -> None:
    program = schedule(name).program
    refusal = program.refusal(stages, microbatches) if program else None

    assert refusal is not None
    assert refusal.fix == fix


def test_lists_that_wait_for_each_other_are_refused() -> None:
    kind = schedule("zero-bubble")
    lists = lists_of(kind, 2, 2, 1)
    backwards_first = replace(lists, passes=lists.passes[:, ::-1].copy())

    with pytest.raises(ValueError, match="wait for each other"):
        replay(backwards_first, equal(kind, 2, (1, 1, 1)))


@pytest.mark.parametrize("kind", LISTED, ids=lambda k: k.name)
@given(
    half=st.integers(1, 3),
    more=st.integers(0, 12),
    sizes=st.lists(st.floats(0.1, 5.0), min_size=4, max_size=4),
)
def test_the_peak_is_that_of_a_few_micro_batches(
    kind: ScheduleKind, half: int, more: int, sizes: list[float]
) -> None:
    p, program = 2 * half, kind.program
    assert program is not None
    chunks = [
        ChunkCosts(forward_s=1.0, backward_s=1.0, activation_bytes=a, deferred_bytes=b)
        for a, b in zip(sizes[::2], sizes[1::2], strict=True)
    ][: program.chunks]
    for stage in range(p):
        m = ENOUGH * p + 2 * more
        whole = kept(program.order(p, stage, m), chunks)
        quick = kept_apart(program, (p, stage, m), chunks)

        assert quick.chunks == whole.chunks
        assert quick.activation_bytes == pytest.approx(whole.activation_bytes)
