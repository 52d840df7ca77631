"""The cheapest ends of a pipeline by the time that they take (a kernel).

For one cell and number of micro-batches a *label* is the cost in chips and the time of the last j
stages with n layers, ``after`` as in ``pricing_kernel``. Until the longest stage is among them its
time is that of one micro-batch through them; then it is the left side of lemma 2 at whichever
weight makes it largest, with the true seconds of the longest stage. A label that costs and takes no
less than another goes. So nothing is traded between chips and time, unlike under a multiplier.
Within one step of time the least cost and the least time of all labels are kept together, which
errs low (``docs/theory/certificate.md``, 3).
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner.arrays import FloatArray, IntArray
from planner.certificate.cell_terms import NONE, ROUND, Case, Cell
from planner.certificate.label_choices import (
    Choices,
    Heads,
    Worth,
    heads_of,
    position,
    with_rest,
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


@nb.njit(cache=True, nogil=True)
def _hopeless(
    frame: Frame, heads: Heads, at: tuple[int, int, int], cost: float, seconds: float
) -> bool:
    """Whether no stages before can complete a label within worth and budget.

    at: phase, stages and the layers that are missing.
    """
    case, cell, worth = frame
    after, j, n = at
    budget = case.goal.budget_s * (1 + ROUND)
    if cost + heads.chips[after, j, n] > worth.chips:
        return True
    for weight in range(len(heads.both)):
        t = weight * seconds if after == 0 else seconds
        late = t + heads.seconds[weight, after, j, n] > budget
        if late or cost + cell.price * t + heads.both[weight, after, j, n] > worth.both:
            return True
        if after == 1:
            break
    return False


@nb.njit(cache=True, nogil=True)
def _spread(
    frame: Frame, x: Labels, move: tuple[int, int, int], choices: Choices, heads: Heads
) -> None:
    """Puts every choice before the labels of move[0] at j - 1; they become labels of move[1]."""
    worth, (source, target, j) = frame.worth, move
    layers = x.low.shape[2] - 1
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
                at = target, j, layers - n - k
                for c in range(choices.start[k], choices.start[k + 1]):
                    cost, lines = held + choices.toll[c], choices.seconds[c]
                    t = old + lines[0] if source == target else with_rest(lines, old)
                    if not _hopeless(frame, heads, at, cost, t):
                        _put(x, (target, j, n + k), cost, t, int(t / worth.step_s))


@nb.njit(cache=True, nogil=True)
def _finish(case: Case, worth: Worth, x: Labels, source: int, j: int, choices: Choices) -> bool:
    """Whether a first stage at position j completes a label within worth and budget."""
    layers = case.offer.tail.shape[1] - 1
    budget = case.goal.budget_s * (1 + ROUND)
    for n in range(layers):
        low, high = x.low[source, j - 1, n], x.high[source, j - 1, n]
        for c in range(choices.start[layers - n], choices.start[layers - n + 1]):
            lines = choices.seconds[c]
            for b in range(low, high + 1):
                old = x.seconds[source, j - 1, n, b]
                if old >= NONE / 2 or x.cost[source, j - 1, n, b] + choices.toll[c] > worth.chips:
                    continue
                if (old + lines[0] if source == 1 else with_rest(lines, old)) <= budget:
                    return True
    return False


@nb.njit(cache=True, nogil=True)
def labels(case: Case, cell: Cell, m: int, asked: NDArray[np.bool_], x: Labels) -> Worth:
    """Fills the labels of a cell for m micro-batches; ``whole`` says what is left of it.

    asked: by the number of stages, (P + 1,). Where ``left`` ends negative they are not complete.
    """
    goal, deepest = case.goal, len(asked) - 1
    most = min(deepest, m - 1) if case.regime.deep else deepest
    while most > 0 and not asked[most]:
        most -= 1
    chips = goal.samples * m - goal.toll
    both = chips + cell.price * goal.budget_s
    chips, both = chips + ROUND * abs(chips), both + ROUND * abs(both)
    worth = Worth(m, chips, both, goal.budget_s * (1 + 2 * ROUND) / STEPS, deepest)
    x.whole[:] = False
    x.low[:], x.high[:] = 1, 0
    if most == 0:
        return worth
    _put(x, (0, 0, 0), 0.0, 0.0, 0)
    frame = Frame(case, cell, worth)
    every = [position(case, cell, worth, j) for j in range(1, most + 1)]
    heads = heads_of(every, cell.price, 3 if case.regime.deep else 2, asked)
    for j in range(1, most + 1):
        own = every[j - 1]
        _spread(frame, x, (0, 0, j), own.inner, heads)
        _spread(frame, x, (1, 1, j), own.inner, heads)
        _spread(frame, x, (0, 1, j), own.lead, heads)
        if asked[j]:
            x.whole[j] = _finish(case, worth, x, 1, j, own.first) or _finish(
                case, worth, x, 0, j, own.alone
            )
        live = False
        for after in range(2):
            for n in range(1, x.low.shape[2]):
                _settle(x, (after, j, n))
                live = live or x.low[after, j, n] <= x.high[after, j, n]
        if not live or x.left[0] < 0:
            break
    return worth
