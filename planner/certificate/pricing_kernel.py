"""The pricing dynamic program: the cheapest template of every number of stages (a kernel).

A *cell* fixes an interval [low_s, high_s] for the longest stage, a multiplier on time and a weight
on what comes after that stage. Positions count from the last stage. ``cost[after, j, n]`` is the
least cost of the last j stages when they hold n layers, ``after`` 1 once the longest stage is among
them; stages before it weigh 1, stages after it ``weight`` (``docs/theory/certificate.md``).
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
    Cells,
    cell_of,
    end_seconds,
    idle_saved,
    kept_at,
    room,
    span,
    value,
    warm_at,
)


class Place(NamedTuple):
    """A position from the end: micro-batches in flight, worth of any template that deep, and least
    cost of every layer before it by chips alone and with time."""

    j: int
    kept: int
    limit: float
    chips: float
    both: float


class Tables(NamedTuple):
    """Work space of one cell: costs, and option, layers and ``after`` of the stage behind each.

    best: (P + 1,), with option, layers and ``after`` of the first stage in ``first``. queue, keys:
    a monotone queue. lead: cheapest longest stage by its layers, and its option in ``leader``.
    """

    cost: FloatArray
    option: NDArray[np.int32]
    held: NDArray[np.int32]
    after: NDArray[np.int32]
    best: FloatArray
    first: NDArray[np.int32]
    queue: IntArray
    keys: FloatArray
    lead: FloatArray
    leader: IntArray


class Line(NamedTuple):
    """Options at one position: cost ``fixed + each n`` for n up to ``top`` layers; (O,) each."""

    option: IntArray
    fixed: FloatArray
    each: FloatArray
    top: IntArray


@nb.njit(cache=True, nogil=True)
def _limit(case: Case, cell: Cell, stages: int, deepest: int) -> float:
    """Largest value of any m of templates with at least so many stages."""
    low, _ = span(case, cell, stages)
    _, top = span(case, cell, stages if case.regime.deep else deepest)
    if low > top:
        return -NONE
    middle = min(max(cell.reference, low), top)
    ends = max(value(case.goal, cell, low), value(case.goal, cell, top))
    best = max(ends, value(case.goal, cell, middle))
    return best + ROUND * abs(best)


@nb.njit(cache=True, nogil=True)
def empty_tables(deepest: int, layers: int) -> Tables:
    """Work space for pipelines of so many stages and layers."""
    shape = (2, deepest + 1, layers + 1)
    return Tables(
        np.empty(shape),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.full(deepest + 1, NONE),
        np.zeros((deepest + 1, 3), np.int32),
        np.zeros(layers + 2, np.int64),
        np.zeros(layers + 2),
        np.zeros(layers + 1),
        np.zeros(layers + 1, np.int64),
    )


@nb.njit(cache=True, nogil=True)
def _fits(seconds: float, each: float) -> int:
    return int(seconds / each + ROUND) if seconds > 0 else 0


@nb.njit(cache=True, nogil=True)
def _line(case: Case, w: float, place: Place, high_s: float, line: Line) -> int:
    """Fills ``line`` with the undominated options of a stage that is not the first."""
    offer, count = case.offer, 0
    for o in range(len(case.tolls)):
        ends, _ = end_seconds(offer, o, place.j, False)
        most = room(offer, o, place.j, place.kept, False)
        top = min(most, _fits(high_s - ends, offer.work[o]))
        if top > 0:
            hop = offer.hand_over[o] if place.j > 1 else 0.0
            fixed, each = case.tolls[o] + w * (ends + hop), w * offer.work[o]
            count = _insert(line, count, o, (fixed, each, top))
    return count


@nb.njit(cache=True, nogil=True)
def _beats(a: tuple[float, float, int], b: tuple[float, float, int]) -> bool:
    """Whether a costs no more than b for every number of layers that b can hold."""
    one = a[0] + a[1] <= b[0] + b[1]
    return a[2] >= b[2] and one and a[0] + a[1] * b[2] <= b[0] + b[1] * b[2]


@nb.njit(cache=True, nogil=True)
def _insert(line: Line, count: int, o: int, new: tuple[float, float, int]) -> int:
    """Adds an option unless one in the line beats it; drops those that it beats."""
    for k in range(count):
        if _beats((line.fixed[k], line.each[k], line.top[k]), new):
            return count
    left = 0
    for k in range(count):
        known = (line.fixed[k], line.each[k], line.top[k])
        if not _beats(new, known):
            line.option[left] = line.option[k]
            line.fixed[left], line.each[left], line.top[left] = known
            left += 1
    line.option[left] = o
    line.fixed[left], line.each[left], line.top[left] = new
    return left + 1


@nb.njit(cache=True, nogil=True)
def _rest(case: Case, kept: int, high_s: float, price: float) -> tuple[float, float]:
    """Least cost of a layer on any stage with ``kept`` in flight: chips alone, and with time."""
    offer, chips, both = case.offer, NONE, NONE
    for o in range(len(case.tolls)):
        most = max(offer.inner[o, kept], offer.first[o, kept])
        n = min(most, _fits(high_s, offer.work[o]))
        if n > 0:
            each = case.tolls[o] / n
            chips = min(chips, each)
            both = min(both, each + price * offer.work[o])
    return chips, both


@nb.njit(cache=True, nogil=True)
def _slide(t: Tables, after: int, place: Place, limit: float, line: Line, count: int) -> None:
    """``cost[after, j, n] = min_k before[n - k] + fixed + each k`` by monotone queues, n < L."""
    before, now = t.cost[after, place.j - 1], t.cost[after, place.j]
    queue, keys, L = t.queue, t.keys, len(now) - 1
    rest = place.both if after == 1 else place.chips
    for x in range(count):
        fixed, each, top = line.fixed[x], line.each[x], line.top[x]
        head = tail = 0
        for n in range(1, L):
            if before[n - 1] < NONE / 2:
                key = before[n - 1] - each * (n - 1)
                while tail > head and keys[tail - 1] >= key:
                    tail -= 1
                keys[tail], queue[tail] = key, n - 1
                tail += 1
            while tail > head and queue[head] < n - top:
                head += 1
            if tail > head:
                v = keys[head] + each * n + fixed
                if v < now[n] and v + rest * (L - n) <= limit:
                    now[n] = v
                    t.option[after, place.j, n] = line.option[x]
                    t.held[after, place.j, n] = n - queue[head]
                    t.after[after, place.j, n] = after


@nb.njit(cache=True, nogil=True)
def _start(t: Tables, place: Place, v: float, chosen: tuple[int, int, int]) -> None:
    """Keeps a whole template if it is the cheapest with so many stages."""
    j = place.j
    if v < t.best[j] and v <= place.limit:
        t.best[j] = v
        t.first[j, 0], t.first[j, 1], t.first[j, 2] = chosen


@nb.njit(cache=True, nogil=True)
def _first_stage(case: Case, cell: Cell, place: Place, t: Tables) -> None:
    """Templates of several stages whose longest one is not the first."""
    offer, before = case.offer, t.cost[1, place.j - 1]
    L = len(before) - 1
    for o in range(len(case.tolls)):
        ends, _ = end_seconds(offer, o, place.j, True)
        most = room(offer, o, place.j, place.kept, True)
        top = min(most, _fits(cell.high_s - ends, offer.work[o]), L - 1)
        fixed = case.tolls[o] + cell.price * (offer.hand_over[o] + ends)
        for n in range(1, top + 1):
            seconds = offer.work[o] * n + offer.tail[o, n]
            _start(t, place, before[L - n] + fixed + cell.price * seconds, (o, n, 1))


@nb.njit(cache=True, nogil=True)
def _lead(case: Case, cell: Cell, place: Place, t: Tables, first: bool) -> None:
    """Stages at the position that are the longest: whole templates, or the cheapest by layers."""
    offer, j, before = case.offer, place.j, t.cost[0, place.j - 1]
    L = len(before) - 1
    warm, reference = warm_at(case.regime, j), float(cell.reference)
    for o in range(len(case.tolls)):
        ends, ahead = end_seconds(offer, o, j, first)
        most = room(offer, o, j, place.kept, first)
        top = min(most, _fits(cell.high_s - ends, offer.work[o]), L if first else L - 1)
        hop = offer.hand_over[o] if j > 1 else 0.0
        least = int(np.ceil((cell.low_s - ends) / offer.work[o] - ROUND))
        for n in range(max(1, least), top + 1):
            u, f = ends + offer.work[o] * n, ahead + offer.forward[o] * n
            seconds = reference * u - warm * idle_saved(cell.weight, u, f) + cell.weight * hop
            v = case.tolls[o] + cell.price * seconds
            if first:
                _start(t, place, before[L - n] + v + cell.price * offer.tail[o, n], (o, n, 0))
            elif v < t.lead[n]:
                t.lead[n], t.leader[n] = v, o


@nb.njit(cache=True, nogil=True)
def _spread(t: Tables, place: Place) -> None:
    """Puts the cheapest longest stages before what comes after them."""
    before, now = t.cost[0, place.j - 1], t.cost[1, place.j]
    L = len(now) - 1
    for k in range(1, L):
        if t.lead[k] >= NONE / 2:
            continue
        for n in range(k, L):
            v = before[n - k] + t.lead[k]
            if v < now[n] and v + place.both * (L - n) <= place.limit:
                now[n] = v
                t.option[1, place.j, n], t.held[1, place.j, n] = t.leader[k], k
                t.after[1, place.j, n] = 0


@nb.njit(cache=True, nogil=True)
def _dead(cost: FloatArray, j: int) -> bool:
    for n in range(1, cost.shape[2]):
        if cost[0, j, n] < NONE / 2 or cost[1, j, n] < NONE / 2:
            return False
    return True


@nb.njit(cache=True, nogil=True)
def solve_cell(case: Case, cell: Cell, t: Tables) -> None:
    """Fills the tables of one cell; ``best`` is NONE where no template is worth its cost."""
    size, deepest = len(case.tolls), len(t.best) - 1
    line = Line(np.zeros(size, np.int64), np.zeros(size), np.zeros(size), np.zeros(size, np.int64))
    least = float(cell.reference) - (0 if case.regime.gpipe else deepest - 1)
    longest = cell.price * min(least * cell.low_s, least * cell.high_s)
    t.best[:] = NONE
    t.cost[:, 0, :] = NONE
    t.cost[0, 0, 0] = 0.0
    for j in range(1, deepest + 1):
        limit = _limit(case, cell, j, deepest)
        if limit <= -NONE:
            return
        later = kept_at(case.regime, j + 1, deepest)
        chips, both = _rest(case, later, cell.high_s, cell.price)
        place = Place(j, kept_at(case.regime, j, deepest), limit, chips, both)
        t.cost[:, j, :] = NONE
        count = _line(case, cell.price * cell.weight, place, cell.high_s, line)
        _slide(t, 0, place, limit - longest, line, count)
        if j > 1:
            count = _line(case, cell.price, place, cell.high_s, line)
            _slide(t, 1, place, limit, line, count)
            _first_stage(case, cell, place, t)
        t.lead[:] = NONE
        _lead(case, cell, place, t, False)
        _lead(case, cell, place, t, True)
        _spread(t, place)
        if _dead(t.cost, j):
            return


@nb.njit(cache=True, nogil=True)
def cheapest(case: Case, cells: Cells, deepest: int) -> tuple[FloatArray, NDArray[np.int32]]:
    """Least cost by cell and number of stages (R, P + 1), and (option, layers) of their stages.

    Costs that no m could pay are NONE. The stages come first to last, (R, P + 1, P, 2).
    """
    size, layers = len(cells.low_s), case.offer.tail.shape[1] - 1
    best = np.full((size, deepest + 1), NONE)
    stages = np.zeros((size, deepest + 1, deepest, 2), np.int32)
    t = empty_tables(deepest, layers)
    for r in range(size):
        solve_cell(case, cell_of(cells, r), t)
        best[r] = t.best
        for p in range(1, deepest + 1):
            if best[r, p] < NONE / 2:
                _decode(t, p, layers, stages[r, p])
    return best, stages


@nb.njit(cache=True, nogil=True)
def _decode(t: Tables, p: int, layers: int, stages: NDArray[np.int32]) -> None:
    stages[0, 0], stages[0, 1] = t.first[p, 0], t.first[p, 1]
    n, after = layers - t.first[p, 1], t.first[p, 2]
    for j in range(p - 1, 0, -1):
        stages[p - j, 0], stages[p - j, 1] = t.option[after, j, n], t.held[after, j, n]
        n, after = n - t.held[after, j, n], t.after[after, j, n]


@nb.njit(cache=True, nogil=True)
def roof(case: Case, cells: Cells, best: FloatArray, profit: FloatArray) -> None:
    """Lowers profit[r, p, m], the proven upper bound on a template's profit, (R, P + 1, M + 1).

    Pairs (p, m) that do not occur are set to -NONE.
    """
    for r in range(best.shape[0]):
        cell = cell_of(cells, r)
        for p in range(1, best.shape[1]):
            low, top = span(case, cell, p)
            for m in range(1, profit.shape[2]):
                bound = -NONE
                if low <= m <= top and best[r, p] < NONE / 2:
                    bound = value(case.goal, cell, m) - best[r, p]
                profit[r, p, m] = min(profit[r, p, m], bound)
