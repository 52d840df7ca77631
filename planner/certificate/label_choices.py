"""What stages may be by position and layers, and what those before a position add (a kernel)."""

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner.arrays import FloatArray, IntArray
from planner.certificate.cell_terms import NONE, ROUND, Case, Cell, end_seconds, room


class Choices(NamedTuple):
    """What a stage of n layers may be: entries start[n] to start[n + 1], none beating another.

    seconds: (N, 3). A longest stage before others that take R makes ``max_k seconds[k] + k R``
    of them; any other stage adds the same three times.
    """

    start: IntArray
    toll: FloatArray
    seconds: FloatArray


class Position(NamedTuple):
    """Stages at one position from the end: neither first nor longest; longest; first; both."""

    inner: Choices
    lead: Choices
    first: Choices
    alone: Choices


class Heads(NamedTuple):
    """Least of what the stages before the last j must add that hold n layers.

    chips: cost, (2, P + 1, L + 1); seconds: time, both: cost and time at the cell's price,
    (3, 2, P + 1, L + 1) by the weight of the time after the longest stage. Then 0: the longest
    stage is yet to come, 1: it is among the last j.
    """

    chips: FloatArray
    both: FloatArray
    seconds: FloatArray


class Worth(NamedTuple):
    """m micro-batches, what they are worth, and with the budget's price; steps of the budget."""

    m: int
    chips: float
    both: float
    step_s: float
    deepest: int


@nb.njit(cache=True, nogil=True)
def in_flight(case: Case, worth: Worth, j: int) -> int:
    """Micro-batches in flight at position j from the end."""
    return min(worth.m, worth.deepest if case.regime.gpipe else min(j, worth.deepest))


@nb.njit(cache=True, nogil=True)
def stage_time(
    case: Case, worth: Worth, at: tuple[int, int, int], first: bool, longest: bool
) -> tuple[float, tuple[float, float, float]]:
    """F + B of option o with n layers at position j, and its ``Choices.seconds``; at: (o, n, j)."""
    o, n, j = at
    ends, ahead = end_seconds(case.offer, o, j, first)
    u = ends + case.offer.work[o] * n
    hop = case.offer.hand_over[o] if j > 1 else 0.0
    tail = case.offer.tail[o, n] if first else 0.0
    if not longest:
        t = u + hop + tail
        return u, (t, t, t)
    f = ahead + case.offer.forward[o] * n
    t, warm = worth.m * u + tail, 0 if case.regime.gpipe else min(j, worth.m) - 1
    once = t + hop - warm * min(f, u - f)
    twice = once + hop - warm * max(f, u - f) if worth.m > j and not case.regime.gpipe else -NONE
    return u, (t, once, twice)


@nb.njit(cache=True, nogil=True)
def with_rest(lines: FloatArray, rest_s: float) -> float:
    """Time of a longest stage and of what comes after it, which takes ``rest_s``."""
    return float(max(lines[0], lines[1] + rest_s, lines[2] + 2.0 * rest_s))


@nb.njit(cache=True, nogil=True)
def most_rest(lines: tuple[float, float, float], spare_s: float) -> float:
    """The largest ``rest_s`` with which a longest stage takes ``spare_s``; negative if none."""
    if lines[0] > spare_s:
        return -NONE
    return min(spare_s - lines[1], 0.5 * (spare_s - lines[2]))


@nb.njit(cache=True, nogil=True)
def _choices(case: Case, cell: Cell, worth: Worth, j: int, first: bool, longest: bool) -> Choices:
    """All stages at position j that no other of as many layers beats."""
    layers, size = case.offer.tail.shape[1] - 1, len(case.tolls)
    top, most = _tops(case, cell, in_flight(case, worth, j), j, first)
    start = np.zeros(layers + 2, np.int64)
    toll, seconds, end = np.empty(size * most), np.empty((size * most, 3)), 0
    for n in range(1, most + 1):
        start[n] = end
        for o in range(size):
            if n > top[o]:
                continue
            u, t = stage_time(case, worth, (o, n, j), first, longest)
            if not (longest and u < cell.low_s * (1 - ROUND)):
                end = _keep(toll, seconds, start[n], end, (case.tolls[o], *t))
    start[most + 1 :] = end
    return Choices(start, toll[:end].copy(), seconds[:end].copy())


@nb.njit(cache=True, nogil=True)
def _tops(case: Case, cell: Cell, kept: int, j: int, first: bool) -> tuple[IntArray, int]:
    """Most layers of every option at position j by room and time, (O,), and the largest of them."""
    top = np.zeros(len(case.tolls), np.int64)
    for o in range(len(top)):
        ends, _ = end_seconds(case.offer, o, j, first)
        spare = cell.high_s * (1 + ROUND) - ends
        if spare > 0:
            held = int(spare / case.offer.work[o] + ROUND)
            top[o] = min(held, room(case.offer, o, j, kept, first))
    return top, int(top.max())


@nb.njit(cache=True, nogil=True)
def position(case: Case, cell: Cell, worth: Worth, j: int) -> Position:
    return Position(
        _choices(case, cell, worth, j, False, False),
        _choices(case, cell, worth, j, False, True),
        _choices(case, cell, worth, j, True, False),
        _choices(case, cell, worth, j, True, True),
    )


@nb.njit(cache=True, nogil=True)
def _keep(
    toll: FloatArray,
    seconds: FloatArray,
    start: int,
    end: int,
    new: tuple[float, float, float, float],
) -> int:
    """Adds a choice to those from start to end unless one beats it; drops those that it beats."""
    for k in range(start, end):
        t = seconds[k]
        if toll[k] <= new[0] and t[0] <= new[1] and t[1] <= new[2] and t[2] <= new[3]:
            return end
    left = start
    for k in range(start, end):
        t = seconds[k]
        if new[0] > toll[k] or new[1] > t[0] or new[2] > t[1] or new[3] > t[2]:
            toll[left] = toll[k]
            seconds[left] = seconds[k]
            left += 1
    toll[left], seconds[left, 0], seconds[left, 1], seconds[left, 2] = new
    return left + 1


@nb.njit(cache=True, nogil=True)
def _lower(
    now: FloatArray, rest: FloatArray, choices: Choices, by: tuple[float, float, int], ends: bool
) -> None:
    """``now[n] = min toll + price seconds + rest[n - k]``; with ``ends`` nothing is left of n.

    by: prices of a unit of cost and of a second, and which seconds.
    """
    for k in range(1, len(now)):
        for c in range(choices.start[k], choices.start[k + 1]):
            v = by[0] * choices.toll[c] + by[1] * choices.seconds[c, by[2]]
            if ends:
                now[k] = min(now[k], v)
                continue
            for n in range(k + 1, len(now)):
                now[n] = min(now[n], v + rest[n - k])


@nb.njit(cache=True, nogil=True)
def _least(
    every: list[Position], weight: int, price: tuple[float, float], asked: NDArray[np.bool_]
) -> FloatArray:
    """A table of ``Heads``; price: of a unit of cost and of a second; asked: by stages."""
    deepest, layers = len(every), len(every[0].inner.start) - 2
    least = np.full((2, deepest + 1, layers + 1), NONE)
    by, after = (price[0], price[1], weight), (price[0], weight * price[1], 0)
    for j in range(deepest, 0, -1):
        x = every[j - 1]
        _lower(least[1, j - 1], least[1, j], x.inner, by, False)
        _lower(least[0, j - 1], least[0, j], x.inner, after, False)
        _lower(least[0, j - 1], least[1, j], x.lead, by, False)
        if asked[j]:
            _lower(least[1, j - 1], least[1, j], x.first, by, True)
            _lower(least[0, j - 1], least[0, j], x.alone, by, True)
    return least


@nb.njit(cache=True, nogil=True)
def heads_of(every: list[Position], price: float, weights: int, asked: NDArray[np.bool_]) -> Heads:
    """weights: how many of 0, 1, 2 are told apart."""
    shape = (weights, 2, len(every) + 1, len(every[0].inner.start) - 1)
    both, seconds = np.empty(shape), np.empty(shape)
    for weight in range(weights):
        both[weight] = _least(every, weight, (1.0, price), asked)
        seconds[weight] = _least(every, weight, (0.0, 1.0), asked)
    return Heads(_least(every, 0, (1.0, 0.0), asked), both, seconds)
