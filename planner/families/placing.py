"""Puts one stage before relaxed chains: a plain one, or one that sets the period, alone or not."""

from typing import NamedTuple

import numba as nb
import numpy as np

from planner.arrays import FloatArray, IntArray
from planner.families.ground import Limits
from planner.families.lines import HOP, LEAST, Lines, keep, step_of
from planner.families.spans import Menus, Spans


class Task(NamedTuple):
    """What does not change. steps: of slack, seconds. longest: no hand-over that matters is longer.

    A NamedTuple because compiled functions take it.
    """

    spans: Spans
    menus: Menus
    node: Limits
    steps: FloatArray
    longest: float


Source = tuple[Lines, int, float]
"""Lines, the line of the chains that a stage is put before, and the hand-over."""

Target = tuple[Lines, int, int]
"""Lines by number of stages, that number, and whether the stage is the first; line 0 is for the
best whole chain."""


@nb.njit(cache=True, nogil=True)
def put(task: Task, source: Source, target: tuple[Lines, int], ranges: IntArray) -> None:
    """Puts one stage before the states of a line, as an inner one and as the first one.

    ranges: of the menus, for an inner and for the first stage, (2, 4).
    """
    after, j = target
    some = np.zeros(3, np.bool_)
    for phase in range(3):
        for i in range(len(task.steps)):
            if source[0].value[source[1], phase, i] < np.inf:
                some[phase] = True
                break
    paces = some[0] and task.node.pace_from <= j <= task.node.pace_to
    for first in range(2 if j >= task.node.least else 1):
        into = (after, j, first)
        if some[1] or (some[0] and not first):
            _extend(task, source, into, ranges[first])
        if paces and ranges[first, 3] > ranges[first, 2]:
            _pace(task, source, into, ranges[first])
        if task.node.windows and some[2]:
            _lengthen(task, source, into, ranges[first])
        if task.node.windows and some[0] and not first:
            _begin(task, source, into, ranges[first])


@nb.njit(cache=True, nogil=True)
def _extend(task: Task, source: Source, into: Target, ranges: IntArray) -> None:
    """A stage that does not set the period."""
    (before, line, hop), (after, j, first) = source, into
    spans, node, steps = task.spans, task.node, task.steps
    kept, top = min(j, node.microbatches), len(task.steps) - 1
    for phase in range(first, 2):
        weight, credit = (1.0, 0.0) if phase else (node.weight, node.credit)
        for i in range(top + 1):
            base = before.value[line, phase, i] + weight * hop - credit - node.each
            if base == np.inf:
                continue
            most, entry = node.high, int(before.entry[line, phase, i])
            if node.windows:
                most -= max(0.0, hop - before.slack[line, phase, i])
            for n in range(ranges[0], ranges[1]):
                s = int(task.menus.plain[n])
                work = float(spans.work[s])
                if work > most:
                    break
                if spans.most[s] < kept:
                    continue
                value = base + weight * work - node.price * spans.size[s]
                if first:
                    keep(after, (0, phase, 0), (value + spans.after[s], entry, s), 0.0)
                    continue
                q = step_of(steps, most - work) if node.windows else top
                keep(after, (j, phase, q), (value, entry, s), most - work)


@nb.njit(cache=True, nogil=True)
def _pace(task: Task, source: Source, into: Target, ranges: IntArray) -> None:
    """A stage that sets the period alone."""
    (before, line, hop), (after, j, first) = source, into
    spans, node, steps = task.spans, task.node, task.steps
    kept, top = min(j, node.microbatches), len(task.steps) - 1
    for i in range(top + 1):
        base = before.value[line, 0, i] + node.weight * hop - node.credit - node.each
        if base == np.inf:
            continue
        most, entry = node.high, int(before.entry[line, 0, i])
        if node.windows:
            most -= max(0.0, hop - before.slack[line, 0, i])
        for n in range(ranges[2], ranges[3]):
            s = int(task.menus.every[n])
            work = float(spans.work[s])
            if work > most:
                break
            if spans.most[s] < kept or work < node.low:
                continue
            value = base + node.weight * work - node.price * spans.size[s]
            if first:
                keep(after, (0, 1, 0), (value + spans.after[s], entry, s), 0.0)
                continue
            keep(after, (j, 1, step_of(steps, most - work)), (value, entry, s), most - work)


@nb.njit(cache=True, nogil=True)
def _begin(task: Task, source: Source, into: Target, ranges: IntArray) -> None:
    """The last stage of a window of several."""
    (before, line, hop), node = source, task.node
    least, best = np.inf, 0
    for i in range(len(task.steps)):
        value = before.value[line, 0, i]
        if value < least and before.slack[line, 0, i] >= hop:
            least, best = value, i
    if least < np.inf:
        base = least + node.weight * hop - node.credit - node.each
        label = (base, int(before.entry[line, 0, best]), 0.0)
        _join(task, into, label, (node.high, node.high, -1.0), ranges)


@nb.njit(cache=True, nogil=True)
def _lengthen(task: Task, source: Source, into: Target, ranges: IntArray) -> None:
    """A further stage of an open window."""
    (before, line, hop), node = source, task.node
    for i in range(len(task.steps)):
        value, least = before.value[line, LEAST, i], before.slack[line, LEAST, i]
        if value < np.inf and least <= hop:
            base, most = value + node.weight * hop - node.credit - node.each, node.high - hop
            longest = max(hop, before.slack[line, HOP, i])
            label = (base, int(before.entry[line, LEAST, i]), longest)
            complete = into[1] * (node.high - node.low)
            most_s = most + min(hop, before.slack[line, LEAST + 1, i])
            _join(task, into, label, (most + least, most_s, complete), ranges)


@nb.njit(cache=True, nogil=True)
def _join(
    task: Task,
    into: Target,
    label: tuple[float, int, float],
    ends: tuple[float, float, float],
    ranges: IntArray,
) -> None:
    """A stage in a window of several that sets the period: its last, an inner one or its first.

    label: value, entry, and longest hand-over so far. ends: least and most seconds at which the
    stage may leave no slack, and the slack at which the window is complete.
    """
    (after, j, first), (base, entry, hops), node = into, label, task.node
    spans, steps = task.spans, task.steps
    kept = min(j, node.microbatches)
    for n in range(ranges[2], ranges[3]):
        s = int(task.menus.every[n])
        work = float(spans.work[s])
        if work > ends[1]:
            break
        low, high = max(0.0, ends[0] - work), ends[1] - work
        if spans.most[s] < kept or low > max(task.longest, ends[2]):
            continue
        value = base + node.weight * work - node.price * spans.size[s]
        if low <= ends[2]:
            total, slack = (
                value - min(hops, (j - 1) * max(0.0, node.low - work)),
                min(high, ends[2]),
            )
            if first:
                keep(after, (0, 1, 0), (total + spans.after[s], entry, s), 0.0)
                continue
            keep(after, (j, 1, step_of(steps, slack)), (total, entry, s), slack)
        if not first and low <= task.longest:
            _open(task, (after, j), (value, entry, s), (low, high, hops))


@nb.njit(cache=True, nogil=True)
def _open(
    task: Task,
    into: tuple[Lines, int],
    label: tuple[float, int, int],
    slack: tuple[float, float, float],
) -> None:
    """Leaves the window open. slack: least and most, and the longest hand-over in the window."""
    after, j = into
    q = 0
    while q < len(task.steps) - 1 and slack[0] >= task.steps[q + 1]:
        q += 1
    if after.value[j, LEAST, q] == np.inf:
        after.slack[j, LEAST, q], after.slack[j, 3, q], after.slack[j, HOP, q] = slack
    after.slack[j, LEAST, q] = min(after.slack[j, LEAST, q], slack[0])
    after.slack[j, 3, q] = max(after.slack[j, 3, q], slack[1])
    after.slack[j, HOP, q] = max(after.slack[j, HOP, q], slack[2])
    keep(after, (j, LEAST, q), label, 0.0)
