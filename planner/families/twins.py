"""Pools that may change places: of layouts that differ in nothing else, one is looked at."""

import numpy as np

from planner.arrays import FloatArray, IntArray
from planner.families.costs import Costs

ALIKE = 1e-12
"""Relative difference of costs that counts as none."""


def twins(costs: Costs, own: IntArray, room: IntArray, kin: IntArray) -> IntArray:
    """For each pool the one, as a bit, that may change places with it and comes before it, (K,).

    own: pool of each option, 0..K-1. room, kin: chips of one copy, and kind, of each pool.
    """
    found = np.zeros(len(room), np.int64)
    for q in range(len(room)):
        for k in range(q - 1, -1, -1):
            if room[k] == room[q] and kin[k] == kin[q] and _alike(costs, own, k, q):
                found[q] = 1 << k
                break
    return found


def _alike(costs: Costs, own: IntArray, k: int, q: int) -> bool:
    """Whether everything stays as it is when the options of both pools change places."""
    order = np.arange(len(own))
    one, other = np.flatnonzero(own == k), np.flatnonzero(own == q)
    if len(one) != len(other):
        return False
    order[one], order[other] = other, one
    rows = (costs.first, costs.last, costs.shared, costs.room, costs.latency, costs.chips)
    same = all(_close(part[order], part) for part in (*rows, costs.layers.swapaxes(0, 1)))
    return same and _close(costs.hop[order][:, order], costs.hop)


def _close(a: FloatArray | IntArray, b: FloatArray | IntArray) -> bool:
    return bool(np.allclose(a, b, rtol=ALIKE, atol=0.0))
