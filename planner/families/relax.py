"""The kernel of the bound: the least value of a relaxed chain.

Stages are placed from the last to the first (proof: ``docs/theory/equal-degree-and-meshes.md``).
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from planner.arrays import FloatArray, IntArray
from planner.families.floors import chain_floor, pool_floor, rest_floor, run_floors, stage_floor
from planner.families.ground import Ground, Limits
from planner.families.lines import STEPS, Lines, lows, new_lines, settle, thin
from planner.families.placing import Task, put
from planner.families.spans import INNER, LAST, Menus, Spans


class Floors(NamedTuple):
    """What can still be taken off: see ``planner.families.floors``. ranges: (S, 4, 4)."""

    stage: FloatArray
    runs: FloatArray
    pools: FloatArray
    ranges: IntArray


@nb.njit(cache=True, nogil=True)
def _ranges(task: Task, slots: int) -> IntArray:
    """Where stages of each slot and place that matter begin and end in both menus, (S, 4, 4)."""
    ranges = np.zeros((slots, 4, 4), np.int64)
    spans, menus = task.spans, task.menus
    for slot in range(slots):
        for place in range(4):
            ranges[slot, place, :2] = menus.plain_at[slot, place]
            a, b = menus.every_at[slot, place]
            while a < b and spans.work[menus.every[a]] < task.node.low - task.longest:
                a += 1
            ranges[slot, place, 2], ranges[slot, place, 3] = a, b
    return ranges


@nb.njit(cache=True, nogil=True)
def _joined(
    task: Task,
    floors: Floors,
    source: tuple[Lines, FloatArray, int, float],
    slot: tuple[int, int, int],
    run: Lines,
    beside: FloatArray,
) -> tuple[int, int]:
    """Puts one stage of a slot before chains over other pools; the lines of ``run`` that it wrote.

    source: chains, the least values of their lines, stages of the first line less one, hand-over.
    slot: itself, its place in the menus, and how many more stages it has.
    """
    (chains, least, begin, hop), (number, place, left) = source, slot
    low, high = len(run.value), -1
    ranges = floors.ranges[number, place : place + 3 : 2]
    for line in range(len(chains.value)):
        j = begin + line + 1
        useful = False
        for phase in range(2 if j <= task.node.deepest else 0):
            more = floors.stage[phase, number, j] + floors.runs[number, left, phase, j] + hop
            useful |= least[line, phase] + more < beside[phase, j]
        if useful:
            low, high = min(low, j), max(high, j)
            put(task, (chains, line, hop), (run, j), ranges)
    return low, high


@nb.njit(cache=True, nogil=True)
def _grown(
    task: Task,
    floors: Floors,
    lines: tuple[Lines, Lines, Lines],
    slot: tuple[int, int, float],
    span: tuple[int, int],
    limits: tuple[FloatArray, IntArray],
) -> tuple[int, int]:
    """Lets a run of one stage grow to as many as there are; the lines of ``into`` with states.

    lines: the run, room for a longer one, and ``into``, which takes all lengths. slot: itself, its
    stages, and the hand-over between them. limits: values that are no use, and the log.
    """
    (run, longer, into), (number, units, hop), (low, high) = lines, slot, span
    least, most = len(run.value), -1
    for n in range(units):
        left = units - 1 - n
        if high < low:
            break
        bounds = limits[0] - floors.runs[number, left], limits[0]
        a, b = settle(run, into, limits[1], (low, high), bounds)
        if a <= b:
            least, most = min(least, a), max(most, b)
        longer.value[0], longer.entry[0], longer.stage[0] = run.value[0], run.entry[0], run.stage[0]
        for j in range(a, min(b, task.node.deepest - 1) + 1 if left else a):
            put(task, (run, j, hop), (longer, j + 1), floors.ranges[number, INNER : INNER + 3 : 2])
        run.value[low : high + 1] = np.inf
        low, high = (a + 1, min(b + 1, task.node.deepest)) if left and a <= b else (1, 0)
        run, longer = longer, run
    return least, most


@nb.njit(cache=True, nogil=True)
def _may_begin(ground: Ground, where: IntArray, mask: int, slot: int) -> bool:
    """Whether chains over the pools of a mask may begin with a slot's stages."""
    q = ground.pool[slot]
    if not mask >> q & 1 or mask & ground.behind[q] != ground.behind[q]:
        return False
    rest = mask ^ (1 << q)
    return rest == 0 or bool(where[rest].any())


@nb.njit(cache=True, nogil=True)
def _may_follow(ground: Ground, rest: int, slot: int, behind: int) -> bool:
    """Whether a slot's stages may come before a chain over ``rest`` that begins in ``behind``."""
    kin = ground.kin[ground.pool[slot]]
    return bool(kin & rest == 0 or kin >> ground.pool[behind] & 1)


@nb.njit(cache=True, nogil=True)
def _from_behind(
    task: Task,
    ground: Ground,
    floors: Floors,
    known: tuple[list[Lines], list[FloatArray], IntArray],
    at: tuple[int, int],
    into: tuple[Lines, FloatArray],
) -> tuple[int, int]:
    """Puts one stage of a slot before all chains over the other pools of a mask.

    known: chains, least values of their lines, and by mask and slot their number and the stages of
    their first line. at: mask and slot. into: the run, and values that are no use. The lines that
    were written.
    """
    (found, least, where), (mask, slot), (run, beside) = known, at, into
    rest, left = mask ^ (1 << ground.pool[slot]), int(ground.units[slot]) - 1
    low, high = len(run.value), -1
    for behind in range(len(ground.pool) if rest else 1):
        number, begin = where[rest, behind]
        if rest and (number == 0 or not _may_follow(ground, rest, slot, behind)):
            continue
        hop = float(ground.hop[slot, behind]) if rest else 0.0
        if hop > task.longest:
            continue
        source = (found[int(number)], least[int(number)], int(begin), hop)
        place = (slot, INNER if rest else LAST, left)
        a, b = _joined(task, floors, source, place, run, beside)
        low, high = min(low, a), max(high, b)
    return low, high


@nb.njit(cache=True, nogil=True)
def _agree(run: Lines, longer: Lines) -> None:
    """Both know the best whole chain."""
    better, other = (run, longer) if run.value[0, 1, 0] < longer.value[0, 1, 0] else (longer, run)
    other.value[0] = better.value[0]
    other.entry[0] = better.entry[0]
    other.stage[0] = better.stage[0]


@nb.njit(cache=True, nogil=True)
def least_chain(
    spans: Spans, menus: Menus, ground: Ground, node: Limits, log: IntArray
) -> tuple[float, int]:
    """Least summed value of a chain in which each pool is one run of stages of one slot.

    Infinite when none is below the goal. Also the entry of its first stage in the log: (parent,
    stage) by entry, from 1.
    """
    slots, pools = len(ground.pool), len(ground.kin)
    longest = max(0.0, node.goal - chain_floor(spans, menus, ground, node))
    task = Task(spans, menus, node, STEPS * node.high, min(longest, ground.hop.max()))
    stage = stage_floor(spans, menus, node, slots)
    runs = run_floors(stage, ground.units)
    floors = Floors(stage, runs, pool_floor(runs, ground), _ranges(task, slots))
    lines = (new_lines(node.deepest + 2), new_lines(node.deepest + 2), new_lines(node.deepest + 2))
    run, longer, into = lines
    run.value[0, 1, 0], longer.value[0, 1, 0] = node.goal, node.goal
    found, least = [new_lines(1)], [np.zeros((1, 2))]
    found[0].value[0, 0, -1], found[0].slack[0, 0, -1] = 0.0, np.inf
    where = np.zeros((1 << pools, slots, 2), np.int64)
    for mask in range(1, 1 << pools):
        beside = run.value[0, 1, 0] - rest_floor(floors.pools, mask)
        for slot in range(slots):
            if stage[0, slot, 1] == np.inf or not _may_begin(ground, where, mask, slot):
                continue
            known = (found, least, where)
            span = _from_behind(task, ground, floors, known, (mask, slot), (run, beside))
            if span[1] < span[0]:
                continue
            place = (slot, int(ground.units[slot]), float(ground.hop[slot, slot]))
            a, b = _grown(task, floors, lines, place, span, (beside, log))
            _agree(run, longer)
            if a <= b:
                where[mask, slot] = len(found), a
                found.append(_taken(into, a, b))
                least.append(lows(found[-1].value))
    return _result(run, node, log)


@nb.njit(cache=True, nogil=True)
def _taken(into: Lines, a: int, b: int) -> Lines:
    """A copy of some lines, which are emptied."""
    value, entry = into.value[a : b + 1].copy(), into.entry[a : b + 1].copy()
    thin(value)
    into.value[a : b + 1] = np.inf
    return Lines(value, entry, into.stage[:1].copy(), into.slack[a : b + 1].copy())


@nb.njit(cache=True, nogil=True)
def _result(run: Lines, node: Limits, log: IntArray) -> tuple[float, int]:
    """The least value below the goal, and its entry in the log."""
    best = run.value[0, 1, 0]
    if best >= node.goal:
        return np.inf, 0
    n = log[0, 0] + 1
    if n >= len(log):
        return best, 0
    log[n, 0], log[n, 1], log[0, 0] = run.entry[0, 1, 0], run.stage[0, 1, 0], n
    return best, n
