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
from planner.certificate.pricing_kernel import Tables, empty_tables, solve_cell
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
    cost: FloatArray
    chips: FloatArray
    before: FloatArray


class Pair(NamedTuple):
    """Stages and micro-batches of the templates listed, their worth before and after pricing."""

    stages: int
    microbatches: int
    worth: float
    limit: float


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
def _too_much(case: Case, cell: Cell, stack: Stack, pair: Pair, d: int, deepest: int) -> bool:
    """Whether the choice at depth d is impossible, and with it any of more layers."""
    o, n, j = stack.option[d], stack.held[d], pair.stages - d
    kept = min(pair.microbatches, deepest if case.regime.gpipe else j)
    u, _ = _seconds(case.offer, o, n, j, d == 0)
    late = stack.before[d] + pair.microbatches * u > case.goal.budget_s * (1 + ROUND)
    dear = stack.chips[d] + case.tolls[o] > pair.worth
    held = n > room(case.offer, o, j, kept, d == 0) or n > stack.left[d]
    return bool(held or late or dear or u > cell.high_s * (1 + ROUND))


@nb.njit(cache=True, nogil=True)
def _child(
    case: Case, cell: Cell, t: Tables, stack: Stack, pair: Pair, d: int
) -> tuple[bool, int, float]:
    """Whether the choice at depth d may be completed; phase and cost with it."""
    offer, o, n, j = case.offer, stack.option[d], stack.held[d], pair.stages - d
    left = stack.left[d] - n
    if (left == 0) != (j == 1):
        stack.turn[d] = 0
        return False, 0, 0.0
    u, f = _seconds(offer, o, n, j, d == 0)
    hop = offer.hand_over[o] if j > 1 else 0.0
    seconds = offer.tail[o, n] if d == 0 else 0.0
    before, longest = stack.phase[d] == 1, stack.turn[d] == 1
    stack.turn[d] = 1 if before and not longest else 0
    if before and not longest:
        seconds += u + hop
    elif before:
        saved = warm_at(case.regime, j) * idle_saved(cell.weight, u, f)
        seconds += pair.microbatches * u - saved + cell.weight * hop
    else:
        seconds += cell.weight * (u + hop)
    phase = 1 if before and not longest else 0
    cost = stack.cost[d] + case.tolls[o] + cell.price * seconds
    possible = not longest or u >= cell.low_s * (1 - ROUND)
    return bool(possible and cost + t.cost[phase, j - 1, left] <= pair.limit), phase, cost


@nb.njit(cache=True, nogil=True)
def _push(case: Case, stack: Stack, pair: Pair, d: int, phase: int, cost: float) -> None:
    offer, o, n = case.offer, stack.option[d], stack.held[d]
    u, _ = _seconds(offer, o, n, pair.stages - d, d == 0)
    stack.left[d + 1], stack.phase[d + 1], stack.cost[d + 1] = stack.left[d] - n, phase, cost
    stack.chips[d + 1] = stack.chips[d] + case.tolls[o]
    stack.before[d + 1] = stack.before[d] + u + offer.hand_over[o]
    stack.option[d + 1] = stack.held[d + 1] = stack.turn[d + 1] = 0


@nb.njit(cache=True, nogil=True)
def _listed(case: Case, cell: Cell, t: Tables, stack: Stack, pair: Pair, nodes: int) -> int:
    """Depth-first over the templates of the pair; one that runs stays on the stack."""
    d, deepest = 0, len(t.best) - 1
    stack.option[0] = stack.held[0] = stack.turn[0] = 0
    stack.left[0], stack.phase[0] = t.cost.shape[2] - 1, 1
    stack.cost[0] = stack.chips[0] = stack.before[0] = 0.0
    while d >= 0:
        if stack.option[d] >= len(case.tolls):
            d -= 1
            continue
        if stack.turn[d] == 0:
            stack.held[d] += 1
        if _too_much(case, cell, stack, pair, d, deepest):
            stack.option[d] += 1
            stack.held[d] = stack.turn[d] = 0
            continue
        possible, phase, cost = _child(case, cell, t, stack, pair, d)
        if not possible:
            continue
        nodes -= 1
        if nodes < 0:
            return OVERFLOW
        if d < pair.stages - 1:
            _push(case, stack, pair, d, phase, cost)
            d += 1
        elif phase == 0 and _runs(case, stack, pair):
            return BROKEN
    return COMPLETE


@nb.njit(cache=True, nogil=True)
def enumerate_cell(
    case: Case, cell: Cell, profit: FloatArray, nodes: int
) -> tuple[int, NDArray[np.int32], int]:
    """Looks at every pair (p, m) of positive ``profit`` (P + 1, M + 1) of the cell.

    COMPLETE when none is left; BROKEN with the stages (option, layers) of a template that runs
    and pays less than it earns, and their number; OVERFLOW when more than ``nodes`` are needed.
    """
    deepest, goal = profit.shape[0] - 1, case.goal
    t = empty_tables(deepest, case.offer.tail.shape[1] - 1)
    stages = np.zeros((deepest, 2), np.int32)
    whole, real = np.zeros((5, deepest + 1), np.int64), np.zeros((3, deepest + 1))
    stack = Stack(whole[0], whole[1], whole[2], whole[3], whole[4], real[0], real[1], real[2])
    for m in range(1, profit.shape[1]):
        if not (profit[:, m] > 0).any():
            continue
        here = Cell(cell.low_s, cell.high_s, cell.price, cell.weight, m)
        solve_cell(case, here, t)
        worth = goal.samples * m - goal.toll
        limit = worth + cell.price * goal.budget_s
        for p in range(1, deepest + 1):
            if profit[p, m] <= 0 or t.best[p] >= NONE / 2:
                continue
            pair = Pair(p, m, worth, limit + ROUND * abs(limit))
            answer = _listed(case, here, t, stack, pair, nodes)
            if answer == BROKEN:
                stages[:p, 0], stages[:p, 1] = stack.option[:p], stack.held[:p]
            if answer != COMPLETE:
                return answer, stages, p
    return COMPLETE, stages, 0
