"""States of relaxed chains, line by line.

What the choices so far mean for the stages before them is one number, the *slack*: by how much the
windows of stages that begin at the frontmost one stay below the limit. States are told apart by
phase and by step of slack. Phase 0: the window that sets the period lies further up; 1: it has
begun here or behind; 2: it ends behind and begins further up.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from planner.arrays import FloatArray, IntArray

STEPS = np.concatenate(
    (
        [0.0, 5e-4, 1e-3, 2e-3, 3e-3, 4e-3, 6e-3],
        0.0075 * np.arange(1, 24),
        [0.22, 0.27, 0.32, np.inf],
    )
)
"""Slack that is told apart, over the limit."""

LEAST, HOP = 2, 4
"""Rows of ``Lines.slack``: those of phase 2 begin here; the hand-overs'."""


class Lines(NamedTuple):
    """States, one line for each number of stages; a NamedTuple because compiled functions take it.

    value: least value, (lines, 3, N). entry: of the chain in the log, or of the one behind its
    first stage, which is ``stage``, (lines, 3, N). slack: most of the chains that a state stands
    for, of phase 0 and of 1; least and most of phase 2, and the longest hand-over in the window of
    those, (lines, 5, N).
    """

    value: FloatArray
    entry: IntArray
    stage: IntArray
    slack: FloatArray


@nb.njit(cache=True, nogil=True)
def new_lines(count: int) -> Lines:
    """Lines without states."""
    shape = (count, 3, len(STEPS))
    none = np.zeros(shape, np.int64)
    return Lines(np.full(shape, np.inf), none, none.copy(), np.zeros((count, 5, len(STEPS))))


@nb.njit(cache=True, nogil=True)
def step_of(steps: FloatArray, slack: float) -> int:
    """The first step that is no less."""
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if steps[middle] < slack:
            low = middle + 1
        else:
            high = middle
    return low


@nb.njit(cache=True, nogil=True)
def keep(
    lines: Lines, at: tuple[int, int, int], label: tuple[float, int, int], slack: float
) -> None:
    """Puts a chain beside those of about the same slack. label: value, entry and stage."""
    line, phase, q = at
    if phase < LEAST:
        known = lines.slack[line, phase, q] if lines.value[at] < np.inf else slack
        lines.slack[line, phase, q] = max(known, slack)
    if label[0] < lines.value[at]:
        lines.value[at], lines.entry[at], lines.stage[at] = label


@nb.njit(cache=True, nogil=True)
def settle(
    run: Lines,
    into: Lines,
    log: IntArray,
    span: tuple[int, int],
    limits: tuple[FloatArray, FloatArray],
) -> tuple[int, int]:
    """Drops states that are no use, logs the others and keeps the better of each in ``into``.

    span: first and last line. limits: value from which a state is no use here, and in ``into``,
    (2, P + 2). The first and last line with states left; none: last < first.
    """
    first, last = span[1] + 1, span[0] - 1
    for j in range(span[0], span[1] + 1):
        for phase in range(3):
            least = limits[0][phase % 2, j]
            for i in range(len(STEPS) - 1, -1, -1):
                value = run.value[j, phase, i]
                if value >= least:
                    run.value[j, phase, i] = np.inf
                    continue
                least = value if phase < LEAST else least
                first, last = min(first, j), j
                n = log[0, 0] + 1 if log[0, 0] + 1 < len(log) else 0
                if n:
                    log[n, 0], log[n, 1] = run.entry[j, phase, i], run.stage[j, phase, i]
                    log[0, 0] = n
                run.entry[j, phase, i] = n
                if value < limits[1][phase % 2, j]:
                    _merge(run, into, (j, phase, i))
    return first, last


@nb.njit(cache=True, nogil=True)
def _merge(run: Lines, into: Lines, at: tuple[int, int, int]) -> None:
    """The better of two states of the same step, and what both say of their slack."""
    j, phase, i = at
    fresh = into.value[at] == np.inf
    for row in range(phase, phase + 1 if phase < LEAST else HOP + 1):
        slack = run.slack[j, row, i]
        if not fresh:
            known = into.slack[j, row, i]
            slack = min(slack, known) if row == LEAST else max(slack, known)
        into.slack[j, row, i] = slack
    if run.value[at] < into.value[at]:
        into.value[at], into.entry[at] = run.value[at], run.entry[at]


@nb.njit(cache=True, nogil=True)
def thin(value: FloatArray) -> None:
    """Drops states for which one with more slack is no worse; none inside a window."""
    for j in range(len(value)):
        for phase in range(LEAST):
            least = np.inf
            for i in range(value.shape[2] - 1, -1, -1):
                if value[j, phase, i] >= least:
                    value[j, phase, i] = np.inf
                else:
                    least = value[j, phase, i]


@nb.njit(cache=True, nogil=True)
def lows(value: FloatArray) -> FloatArray:
    """Least value of each line before and from the window that sets the period, (lines, 2)."""
    least = np.full((len(value), 2), np.inf)
    for line in range(len(value)):
        for phase in range(3):
            for i in range(value.shape[2]):
                least[line, phase % 2] = min(least[line, phase % 2], value[line, phase, i])
    return least
