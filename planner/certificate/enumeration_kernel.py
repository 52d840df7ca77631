"""Lists what the relaxation of a cell cannot exclude and asks the simulation (a kernel).

For given numbers of stages and micro-batches every template whose relaxed cost is within its
worth is built from the first stage on; the pricing tables say exactly what the rest costs at least.
A complete list of templates that do not run in time closes the pair with no relaxation left.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from costmodel.schedules import gpipe, one_f_one_b
from planner.arrays import FloatArray, IntArray
from planner.certificate.cell_terms import NONE, ROUND, Case, Cell, end_seconds, room
from planner.certificate.label_choices import Worth, in_flight, most_rest, stage_time
from planner.certificate.label_kernel import Frame, Labels, cheapest_from, labels
from planner.certificate.relaxed import Offer

COMPLETE, BROKEN, OVERFLOW = 0, 1, 2

simulate_1f1b = one_f_one_b.simulate
simulate_gpipe = gpipe.simulate


class Stack(NamedTuple):
    """Depth-first state by depth: what is tried next, and what is chosen.

    turn: 0 before the longest stage, 1 when the same choice is tried as the longest one. before:
    seconds until the first forward and after the last backward of the stage.
    """

    option: IntArray
    held: IntArray
    turn: IntArray
    left: IntArray
    phase: IntArray
    seconds: FloatArray
    chips: FloatArray
    before: FloatArray


class Pair(NamedTuple):
    """Stages and micro-batches of the templates listed."""

    stages: int
    microbatches: int


@nb.njit(cache=True, nogil=True)
def _seconds(offer: Offer, o: int, n: int, j: int, first: bool) -> tuple[float, float]:
    """F + B and F of a stage."""
    ends, ahead = end_seconds(offer, o, j, first)
    return ends + offer.work[o] * n, ahead + offer.forward[o] * n


@nb.njit(cache=True, nogil=True)
def _runs(case: Case, stack: Stack, pair: Pair) -> bool:
    """Whether the template on the stack runs its micro-batches in time."""
    offer, p = case.offer, pair.stages
    forward, backward, hops = np.zeros(p), np.zeros(p), np.zeros(p - 1)
    for i in range(p):
        o = stack.option[i]
        u, f = _seconds(offer, o, stack.held[i], p - i, i == 0)
        forward[i], backward[i] = f, u - f
        if i < p - 1:
            hops[i] = 0.5 * offer.hand_over[o]
    left = case.goal.budget_s * (1 + ROUND) - offer.tail[stack.option[0], stack.held[0]]
    if case.regime.gpipe:
        return bool(simulate_gpipe(forward, backward, hops, hops, pair.microbatches)[0] <= left)
    return bool(simulate_1f1b(forward, backward, hops, hops, pair.microbatches)[0] <= left)


@nb.njit(cache=True, nogil=True)
def _too_much(case: Case, cell: Cell, worth: Worth, stack: Stack, pair: Pair, d: int) -> bool:
    """Whether the choice at depth d is impossible, and with it any of more layers."""
    o, n, j = stack.option[d], stack.held[d], pair.stages - d
    kept = in_flight(case, worth, j)
    u, _ = _seconds(case.offer, o, n, j, d == 0)
    late = stack.before[d] + pair.microbatches * u > case.goal.budget_s * (1 + ROUND)
    dear = stack.chips[d] + case.tolls[o] > worth.chips
    held = n > room(case.offer, o, j, kept, d == 0) or n > stack.left[d]
    return bool(held or late or dear or u > cell.high_s * (1 + ROUND))


@nb.njit(cache=True, nogil=True)
def _child(frame: Frame, x: Labels, stack: Stack, pair: Pair, d: int) -> tuple[bool, int, float]:
    """Whether the choice at depth d may be completed; phase and seconds with it."""
    case, cell, worth = frame
    o, n, j = stack.option[d], stack.held[d], pair.stages - d
    left = stack.left[d] - n
    if (left == 0) != (j == 1):
        stack.turn[d] = 0
        return False, 0, 0.0
    before, longest = stack.phase[d] == 1, stack.turn[d] == 1
    stack.turn[d] = 1 if before and not longest else 0
    u, lines = stage_time(case, worth, (o, n, j), d == 0, longest)
    phase = 1 if before and not longest else 0
    spare = case.goal.budget_s * (1 + ROUND) - stack.seconds[d]
    spare = most_rest(lines, spare) if longest else spare - lines[0]
    seconds = case.goal.budget_s * (1 + ROUND) - spare
    if spare < 0 or (longest and u < cell.low_s * (1 - ROUND)):
        return False, phase, seconds
    rest = cheapest_from(x, phase, j - 1, left, int(spare / worth.step_s))
    return bool(stack.chips[d] + case.tolls[o] + rest <= worth.chips), phase, seconds


@nb.njit(cache=True, nogil=True)
def _push(case: Case, stack: Stack, pair: Pair, d: int, phase: int, seconds: float) -> None:
    offer, o, n = case.offer, stack.option[d], stack.held[d]
    u, _ = _seconds(offer, o, n, pair.stages - d, d == 0)
    stack.left[d + 1], stack.phase[d + 1] = stack.left[d] - n, phase
    stack.seconds[d + 1] = seconds
    stack.chips[d + 1] = stack.chips[d] + case.tolls[o]
    stack.before[d + 1] = stack.before[d] + u + offer.hand_over[o]
    stack.option[d + 1] = stack.held[d + 1] = stack.turn[d + 1] = 0


@nb.njit(cache=True, nogil=True)
def _listed(frame: Frame, x: Labels, stack: Stack, pair: Pair, nodes: int) -> tuple[int, int]:
    """Depth-first over the templates of the pair; one that runs stays on the stack.

    Returns the answer and how many choices may still be looked at.
    """
    case, cell, worth = frame
    d = 0
    stack.option[0] = stack.held[0] = stack.turn[0] = 0
    stack.left[0], stack.phase[0] = case.offer.tail.shape[1] - 1, 1
    stack.seconds[0] = stack.chips[0] = stack.before[0] = 0.0
    while d >= 0:
        nodes -= 1
        if nodes < 0:
            return OVERFLOW, 0
        if stack.option[d] >= len(case.tolls):
            d -= 1
            continue
        if stack.turn[d] == 0:
            stack.held[d] += 1
        if _too_much(case, cell, worth, stack, pair, d):
            stack.option[d] += 1
            stack.held[d] = stack.turn[d] = 0
            continue
        possible, phase, seconds = _child(frame, x, stack, pair, d)
        if not possible:
            continue
        if d < pair.stages - 1:
            _push(case, stack, pair, d, phase, seconds)
            d += 1
        elif phase == 0 and _runs(case, stack, pair):
            return BROKEN, nodes
    return COMPLETE, nodes


@nb.njit(cache=True, nogil=True)
def enumerate_cell(
    case: Case, cell: Cell, profit: FloatArray, nodes: int, x: Labels
) -> tuple[int, NDArray[np.int32], int]:
    """Looks at every pair (p, m) of positive ``profit`` (P + 1, M + 1) of the cell.

    COMPLETE when none is left; BROKEN with the stages (option, layers) of a template that runs
    and pays less than it earns, and their number; OVERFLOW when a list needs to look at more than
    ``nodes`` choices, or labels at more extensions than they have left. Pairs that are closed lose
    their profit. x: work space.
    """
    deepest, answer = profit.shape[0] - 1, COMPLETE
    stages = np.zeros((deepest, 2), np.int32)
    whole, real = np.zeros((5, deepest + 1), np.int64), np.zeros((3, deepest + 1))
    stack = Stack(whole[0], whole[1], whole[2], whole[3], whole[4], real[0], real[1], real[2])
    for m in range(1, profit.shape[1]):
        if not (profit[:, m] > 0).any():
            continue
        worth = labels(case, cell, m, profit[:, m] > 0, x)
        if x.left[0] < 0:
            return OVERFLOW, stages, 0
        for p in range(1, deepest + 1):
            if profit[p, m] > 0 and x.whole[p]:
                own, nodes = _listed(Frame(case, cell, worth), x, stack, Pair(p, m), nodes)
                if own == BROKEN:
                    stages[:p, 0], stages[:p, 1] = stack.option[:p], stack.held[:p]
                    return BROKEN, stages, p
                if own == OVERFLOW:
                    answer = OVERFLOW
                    continue
            profit[p, m] = min(profit[p, m], -NONE)
    return answer, stages, 0
