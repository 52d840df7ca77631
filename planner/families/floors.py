"""Values that no part of a relaxed chain is below, whatever the order of its pools."""

import numba as nb
import numpy as np

from planner.arrays import FloatArray, IntArray
from planner.families.ground import Ground, Limits
from planner.families.spans import Spans


@nb.njit(cache=True, nogil=True)
def stage_floor(spans: Spans, node: Limits, kept: IntArray, slots: int) -> FloatArray:
    """Least value of a stage by the phase of what follows, slot and position, (2, S, P + 2)."""
    P = node.deepest
    least = np.full((2, slots, P + 2), np.inf)
    for s in kept:
        plain = spans.work[s] - node.price * spans.size[s]
        ramp = node.weight * spans.work[s] - node.credit - node.price * spans.size[s]
        slot, most = spans.slot[s], min(spans.most[s], P)
        if most >= node.microbatches:
            most = P
        least[0, slot, most] = min(least[0, slot, most], plain, ramp)
        least[1, slot, most] = min(least[1, slot, most], plain)
    for j in range(P - 1, -1, -1):
        least[:, :, j] = np.minimum(least[:, :, j], least[:, :, j + 1])
    return least


@nb.njit(cache=True, nogil=True)
def run_floor(stage: FloatArray, units: int) -> FloatArray:
    """What up to n more stages of a slot take off at most after j stages, (2, n + 1, P + 2).

    stage: their least values by position, (2, P + 2).
    """
    P = stage.shape[1] - 2
    floor = np.zeros((2, units + 1, P + 2))
    for n in range(1, units + 1):
        for phase in range(2):
            for j in range(P):
                value = stage[phase, j + 1] + floor[phase, n - 1, j + 1]
                floor[phase, n, j] = min(0.0, value)
    return floor


@nb.njit(cache=True, nogil=True)
def pool_floor(stage: FloatArray, ground: Ground) -> FloatArray:
    """What the stages of each pool take off at most after j stages, (2, K, P + 2)."""
    K, P = len(ground.hop), stage.shape[2] - 2
    best = np.zeros((2, K, P + 2))
    for slot in range(len(ground.pool)):
        k, units = ground.pool[slot], ground.units[slot]
        floor = run_floor(stage[:, slot], units)
        hop = ground.hop[k].min()
        for phase in range(2):
            for j in range(P + 1):
                joined = hop if j else 0.0
                best[phase, k, j] = min(best[phase, k, j], floor[phase, units, j] + joined)
    return best


@nb.njit(cache=True, nogil=True)
def chain_floor(spans: Spans, plain: IntArray, ground: Ground, node: Limits) -> float:
    """A value that no chain is below, in no time: pools one by one, whatever their order.

    plain: stages that no other beats, quickest first.
    """
    best = np.zeros(len(ground.hop))
    within = plain[: np.searchsorted(spans.work[plain], node.high, side="right")]
    stage = stage_floor(spans, node, within, len(ground.pool))[0]
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
