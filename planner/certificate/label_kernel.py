"""The cheapest ends of a pipeline by the time that they take (a kernel).

For one cell and number of micro-batches a *label* is the cost in chips and the time of the last j
stages with n layers, ``after`` as in ``pricing_kernel``. Time is the left side of lemma 2 at a
fixed weight, with the true seconds of the longest stage; a label that costs and takes no less than
another goes. So nothing is traded between chips and time, unlike under a multiplier.
Within one step of time the least cost and the least time of all labels are kept together, which
errs low (``docs/theory/certificate.md``, 3).
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner.arrays import FloatArray, IntArray
from planner.certificate.cell_terms import (
    NONE,
    ROUND,
    Case,
    Cell,
    end_seconds,
    idle_saved,
    room,
    warm_at,
)

STEPS = 1024
"""Steps of time in a budget."""


class Labels(NamedTuple):
    """Of the last j stages with n layers, by step of time, (2, P + 1, L + 1, STEPS + 2).

    cost: least cost up to the end of the step; seconds: least time of a label in it, NONE where it
    has none. low, high: first and last step in use, (2, P + 1, L + 1); low > high without labels.
    whole: whether some template of so many stages is within worth and budget, (P + 1,). left: how
    many extensions of labels may still be looked at, (1,); negative once that was not enough.
    """

    cost: FloatArray
    seconds: FloatArray
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    whole: NDArray[np.bool_]
    left: IntArray


class Choices(NamedTuple):
    """What a stage of n layers may be: entries start[n] to start[n + 1], none beating another."""

    start: IntArray
    toll: FloatArray
    seconds: FloatArray


class Worth(NamedTuple):
    """m micro-batches, what they are worth, and with the budget's price; steps of the budget."""

    m: int
    chips: float
    both: float
    step_s: float
    deepest: int


@nb.njit(cache=True, nogil=True)
def empty_labels(deepest: int, layers: int) -> Labels:
    """Work space for pipelines of so many stages and layers."""
    shape = (2, deepest + 1, layers + 1)
    return Labels(
        np.empty((2, deepest + 1, layers + 1, STEPS + 2)),
        np.empty((2, deepest + 1, layers + 1, STEPS + 2)),
        np.ones(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(deepest + 1, np.bool_),
        np.zeros(1, np.int64),
    )


@nb.njit(cache=True, nogil=True)
def cheapest_from(x: Labels, after: int, j: int, n: int, step: int) -> float:
    """Least cost of the labels of the last j stages that end by the step; NONE if none does."""
    low, high = x.low[after, j, n], x.high[after, j, n]
    if low > high or step < low:
        return NONE
    return float(x.cost[after, j, n, min(step, high)])


@nb.njit(cache=True, nogil=True)
def in_flight(case: Case, worth: Worth, j: int) -> int:
    """Micro-batches in flight at position j from the end."""
    return min(worth.m, worth.deepest if case.regime.gpipe else min(j, worth.deepest))


@nb.njit(cache=True, nogil=True)
def stage_time(
    case: Case, cell: Cell, worth: Worth, at: tuple[int, int, int], first: bool, longest: bool
) -> tuple[float, float]:
    """F + B of option o with n layers at position j, and what it adds to the time of a label.

    at: (o, n, j). A longest stage adds all its micro-batches.
    """
    o, n, j = at
    ends, ahead = end_seconds(case.offer, o, j, first)
    u = ends + case.offer.work[o] * n
    hop = case.offer.hand_over[o] if j > 1 else 0.0
    tail = case.offer.tail[o, n] if first else 0.0
    if not longest:
        return u, u + hop + tail
    f = ahead + case.offer.forward[o] * n
    saved = warm_at(case.regime, j) * idle_saved(cell.weight, u, f)
    return u, worth.m * u - saved + cell.weight * hop + tail


@nb.njit(cache=True, nogil=True)
def _choices(case: Case, cell: Cell, worth: Worth, j: int, first: bool, longest: bool) -> Choices:
    """All stages at position j that no other of as many layers beats."""
    layers, size = case.offer.tail.shape[1] - 1, len(case.tolls)
    start = np.zeros(layers + 2, np.int64)
    toll, seconds = np.empty(size * (layers + 1)), np.empty(size * (layers + 1))
    kept, end = in_flight(case, worth, j), 0
    for n in range(1, layers + 1):
        start[n] = end
        for o in range(size):
            if n > room(case.offer, o, j, kept, first):
                continue
            u, t = stage_time(case, cell, worth, (o, n, j), first, longest)
            if u > cell.high_s * (1 + ROUND) or (longest and u < cell.low_s * (1 - ROUND)):
                continue
            end = _keep(toll, seconds, start[n], end, (case.tolls[o], t))
    start[layers + 1] = end
    return Choices(start, toll[:end].copy(), seconds[:end].copy())


@nb.njit(cache=True, nogil=True)
def _keep(
    toll: FloatArray, seconds: FloatArray, start: int, end: int, new: tuple[float, float]
) -> int:
    """Adds a choice to those from start to end unless one beats it; drops those that it beats."""
    for k in range(start, end):
        if toll[k] <= new[0] and seconds[k] <= new[1]:
            return end
    left = start
    for k in range(start, end):
        if not (new[0] <= toll[k] and new[1] <= seconds[k]):
            toll[left], seconds[left] = toll[k], seconds[k]
            left += 1
    toll[left], seconds[left] = new
    return left + 1


@nb.njit(cache=True, nogil=True)
def _before(case: Case, cell: Cell, worth: Worth, j: int, price: float) -> FloatArray:
    """Least cost of n layers before position j, with time at a price, (L + 1,)."""
    offer, layers = case.offer, case.offer.tail.shape[1] - 1
    kept = in_flight(case, worth, j + 1)
    each, least = np.full(layers + 1, NONE), np.full(layers + 1, NONE)
    for o in range(len(case.tolls)):
        most = max(offer.inner[o, kept], offer.first[o, kept])
        for n in range(1, layers + 1):
            if n > most or offer.work[o] * n > cell.high_s * (1 + ROUND):
                break
            v = case.tolls[o] + price * (offer.work[o] * n + offer.hand_over[o])
            each[n] = min(each[n], v)
    least[0] = 0.0
    for n in range(1, layers + 1):
        for k in range(1, n + 1):
            if each[k] < NONE / 2:
                least[n] = min(least[n], each[k] + least[n - k])
    return least


@nb.njit(cache=True, nogil=True)
def _put(x: Labels, at: tuple[int, int, int], cost: float, seconds: float, step: int) -> None:
    """Lowers the label of a step of time; the range in use grows to hold it."""
    low, high = x.low[at], x.high[at]
    costs, times = x.cost[at], x.seconds[at]
    if low > high:
        x.low[at] = x.high[at] = step
        costs[step], times[step] = cost, seconds
        return
    for b in range(step, low):
        costs[b] = times[b] = NONE
    for b in range(high + 1, step + 1):
        costs[b] = times[b] = NONE
    x.low[at], x.high[at] = min(low, step), max(high, step)
    costs[step], times[step] = min(costs[step], cost), min(times[step], seconds)


@nb.njit(cache=True, nogil=True)
def _settle(x: Labels, at: tuple[int, int, int]) -> None:
    """Drops labels that an earlier step beats, and makes costs those up to each step."""
    costs, times, least = x.cost[at], x.seconds[at], NONE
    for b in range(x.low[at], x.high[at] + 1):
        if costs[b] >= least:
            costs[b], times[b] = least, NONE
        least = costs[b]


class Frame(NamedTuple):
    """What is priced, in which cell, for how many micro-batches."""

    case: Case
    cell: Cell
    worth: Worth


class Limits(NamedTuple):
    """Least costs before a position by chips and with time, and what the longest stage adds."""

    chips: FloatArray
    both: FloatArray
    longest: float


@nb.njit(cache=True, nogil=True)
def _spread(
    frame: Frame, x: Labels, move: tuple[int, int, int], choices: Choices, limits: Limits
) -> None:
    """Puts every choice before the labels of move[0] at j - 1; they become labels of move[1]."""
    (case, cell, worth), (source, target, j) = frame, move
    layers = case.offer.tail.shape[1] - 1
    budget = case.goal.budget_s * (1 + ROUND)
    scale = cell.weight if target == 0 else 1.0
    more = cell.price * limits.longest if target == 0 else 0.0
    for n in range(layers):
        if x.low[source, j - 1, n] > x.high[source, j - 1, n]:
            continue
        for b in range(x.low[source, j - 1, n], x.high[source, j - 1, n] + 1):
            old = x.seconds[source, j - 1, n, b]
            if old >= NONE / 2:
                continue
            held = x.cost[source, j - 1, n, b]
            x.left[0] -= choices.start[layers - n]
            if x.left[0] < 0:
                return
            for k in range(1, layers - n):
                rest, both = limits.chips[layers - n - k], limits.both[layers - n - k]
                for c in range(choices.start[k], choices.start[k + 1]):
                    cost, t = held + choices.toll[c], old + scale * choices.seconds[c]
                    priced = cost + cell.price * t + both + more
                    if t <= budget and cost + rest <= worth.chips and priced <= worth.both:
                        _put(x, (target, j, n + k), cost, t, int(t / worth.step_s))


@nb.njit(cache=True, nogil=True)
def _finish(case: Case, worth: Worth, x: Labels, source: int, j: int, choices: Choices) -> bool:
    """Whether a first stage at position j completes a label within worth and budget."""
    layers = case.offer.tail.shape[1] - 1
    budget = case.goal.budget_s * (1 + ROUND)
    for n in range(layers):
        low, high = x.low[source, j - 1, n], x.high[source, j - 1, n]
        for c in range(choices.start[layers - n], choices.start[layers - n + 1]):
            for b in range(low, high + 1):
                t = x.seconds[source, j - 1, n, b] + choices.seconds[c]
                if t <= budget and x.cost[source, j - 1, n, b] + choices.toll[c] <= worth.chips:
                    return True
    return False


@nb.njit(cache=True, nogil=True)
def _longest(case: Case, cell: Cell, worth: Worth, stages: int) -> float:
    """Least seconds that the longest stage adds beyond those of any other stage."""
    warm = warm_at(case.regime, stages)
    times = worth.m - 1 - 0.5 * warm * cell.weight
    return times * (cell.low_s if times >= 0 else cell.high_s)


@nb.njit(cache=True, nogil=True)
def labels(case: Case, cell: Cell, m: int, deepest: int, x: Labels) -> Worth:
    """Fills the labels of a cell for m micro-batches; ``whole`` says what is left of it.

    Where ``left`` ends negative they are not complete.
    """
    goal = case.goal
    most = min(deepest, m - 1) if case.regime.deep else deepest
    chips = goal.samples * m - goal.toll
    both = chips + cell.price * goal.budget_s
    chips, both = chips + ROUND * abs(chips), both + ROUND * abs(both)
    worth = Worth(m, chips, both, goal.budget_s * (1 + 2 * ROUND) / STEPS, deepest)
    x.whole[:] = False
    x.low[:], x.high[:] = 1, 0
    _put(x, (0, 0, 0), 0.0, 0.0, 0)
    extra, frame = _longest(case, cell, worth, most), Frame(case, cell, worth)
    for j in range(1, most + 1):
        limits = Limits(
            _before(case, cell, worth, j, 0.0), _before(case, cell, worth, j, cell.price), extra
        )
        inner = _choices(case, cell, worth, j, False, False)
        lead = _choices(case, cell, worth, j, False, True)
        first = _choices(case, cell, worth, j, True, False)
        alone = _choices(case, cell, worth, j, True, True)
        _spread(frame, x, (0, 0, j), inner, limits)
        _spread(frame, x, (1, 1, j), inner, limits)
        _spread(frame, x, (0, 1, j), lead, limits)
        x.whole[j] = _finish(case, worth, x, 1, j, first) or _finish(case, worth, x, 0, j, alone)
        live = False
        for after in range(2):
            for n in range(1, x.low.shape[2]):
                _settle(x, (after, j, n))
                live = live or x.low[after, j, n] <= x.high[after, j, n]
        if not live or x.left[0] < 0:
            break
    return worth
