"""Values that no part of a relaxed chain is below, whatever the order of its pools."""

import numba as nb
import numpy as np

from planner.arrays import FloatArray, IntArray
from planner.families.ground import Ground, Limits
from planner.families.spans import Menus, Spans


@nb.njit(cache=True, nogil=True)
def stage_floor(spans: Spans, menus: Menus, node: Limits, slots: int) -> FloatArray:
    """Least value of a stage by the phase of what follows, slot and position, (2, S, P + 2)."""
    P = node.deepest
    least = np.full((2, slots, P + 2), np.inf)
    for s in menus.plain:
        if spans.work[s] > node.high:
            continue
        rest = node.each + node.price * spans.size[s]
        plain = spans.work[s] - rest
        ramp = node.weight * spans.work[s] - node.credit - rest
        slot, most = spans.slot[s], min(spans.most[s], P)
        if most >= node.microbatches:
            most = P
        least[0, slot, most] = min(least[0, slot, most], plain, ramp)
        least[1, slot, most] = min(least[1, slot, most], plain)
    for j in range(P - 1, -1, -1):
        least[:, :, j] = np.minimum(least[:, :, j], least[:, :, j + 1])
    return least


@nb.njit(cache=True, nogil=True)
def run_floors(stage: FloatArray, units: IntArray) -> FloatArray:
    """What up to n more stages of a slot take off at most after j stages, (S, n + 1, 2, P + 2).

    stage: see ``stage_floor``.
    """
    slots, P = len(units), stage.shape[2] - 2
    floor = np.zeros((slots, units.max() + 1, 2, P + 2))
    for slot in range(slots):
        for n in range(1, units[slot] + 1):
            for phase in range(2):
                for j in range(P):
                    value = stage[phase, slot, j + 1] + floor[slot, n - 1, phase, j + 1]
                    floor[slot, n, phase, j] = min(0.0, value)
    return floor


@nb.njit(cache=True, nogil=True)
def pool_floor(runs: FloatArray, ground: Ground) -> FloatArray:
    """What the stages of each pool take off at most after j stages, (2, K, P + 2).

    runs: see ``run_floors``.
    """
    K, P = len(ground.kin), runs.shape[3] - 2
    best = np.zeros((2, K, P + 2))
    for slot in range(len(ground.pool)):
        k, units = ground.pool[slot], ground.units[slot]
        hop = ground.hop[slot].min()
        for phase in range(2):
            for j in range(P + 1):
                joined = hop if j else 0.0
                best[phase, k, j] = min(best[phase, k, j], runs[slot, units, phase, j] + joined)
    return best


@nb.njit(cache=True, nogil=True)
def chain_floor(spans: Spans, menus: Menus, ground: Ground, node: Limits) -> float:
    """A value that no chain is below, in no time: pools one by one, whatever their order."""
    best = np.zeros(len(ground.kin))
    stage = stage_floor(spans, menus, node, len(ground.pool))[0]
    for slot in range(len(ground.pool)):
        total = 0.0
        for j in range(1, min(ground.units[slot], node.deepest) + 1):
            total += stage[slot, j]
            if stage[slot, j] >= 0.0:
                break
            best[ground.pool[slot]] = min(best[ground.pool[slot]], total)
    return float(best.sum())


@nb.njit(cache=True, nogil=True)
def rest_floor(pools: FloatArray, mask: int) -> FloatArray:
    """What pools outside a set (as bits) take off at most, by phase and stage, (2, P + 2)."""
    total = np.zeros((2, pools.shape[2]))
    for k in range(pools.shape[1]):
        if not mask >> k & 1:
            total += pools[:, k]
    return total
