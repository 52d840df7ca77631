"""Chooses layers, recompute mode and ZeRO stage of every stage, given its degrees.

The stages of a pipeline are balanced: the largest F + B is minimised under the memory of each
stage at its place in the pipeline. Holding more layers never takes less time or memory, so for a
limit tau it is best that every stage from the first on takes as many layers as it can (exchange
argument), and tau is found by bisection.
"""

import numba as nb
import numpy as np

from planner.arrays import Arrays, IntArray, stage_bytes, stage_seconds

BIG = float("inf")
BISECTIONS = 24
TOLERANCE = 1e-3


@nb.njit(cache=True, nogil=True)
def _reach(x: Arrays, o: int, span: tuple[int, int], in_flight: int, tau: float) -> int:
    """Largest b <= span[1] such that option o runs [span[0], b) within tau and its memory."""
    a = span[0]
    L = x.forward.shape[1] - 1
    best = a
    low, high = a + 1, span[1]
    while low <= high:
        b = (low + high) // 2
        forward, backward = stage_seconds(x, o, a, b, L)
        if forward + backward <= tau and stage_bytes(x, o, a, b, L, in_flight) <= x.budget[o]:
            best = b
            low = b + 1
        else:
            high = b - 1
    return best


@nb.njit(cache=True, nogil=True)
def fill(
    x: Arrays, rows: IntArray, in_flight: IntArray, limits: IntArray, tau: float, cuts: IntArray
) -> bool:
    """Whether all layers fit within tau; writes the cuts. Stage i may run any of rows[i, :] >= 0.

    limits[0, i] <= cuts[i + 1] <= limits[1, i].
    """
    p = len(rows)
    L = x.forward.shape[1] - 1
    cuts[0] = 0
    for i in range(p):
        a = cuts[i]
        stop = min(limits[1, i], L - (p - 1 - i))
        best = a
        for v in range(rows.shape[1]):
            if rows[i, v] >= 0 and best < stop:
                best = max(best, _reach(x, rows[i, v], (a, stop), in_flight[i], tau))
        if best == a or best < limits[0, i]:
            return False
        cuts[i + 1] = best
    return cuts[p] == L


@nb.njit(cache=True, nogil=True)
def fastest_rows(
    x: Arrays, rows: IntArray, in_flight: IntArray, cuts: IntArray, chosen: IntArray
) -> float:
    """Largest F + B when every stage runs its fastest option that fits; infinite if none fits."""
    L = x.forward.shape[1] - 1
    slowest = 0.0
    for i in range(len(rows)):
        best = BIG
        for v in range(rows.shape[1]):
            o = rows[i, v]
            if o < 0:
                continue
            forward, backward = stage_seconds(x, o, cuts[i], cuts[i + 1], L)
            seconds = forward + backward
            if seconds < best * (1 - 1e-9):
                used = stage_bytes(x, o, cuts[i], cuts[i + 1], L, in_flight[i])
                if used <= x.budget[o]:
                    best = seconds
                    chosen[i] = o
        if best > slowest:
            slowest = best
    return slowest


@nb.njit(cache=True, nogil=True)
def _mean_seconds(x: Arrays, rows: IntArray) -> float:
    """No largest F + B is below the layers over the summed speeds of the stages."""
    L = x.forward.shape[1] - 1
    speed = 0.0
    for i in range(len(rows)):
        least = np.inf
        for v in range(rows.shape[1]):
            if rows[i, v] >= 0:
                least = min(least, x.forward[rows[i, v], L] + x.backward[rows[i, v], L])
        speed += 1.0 / least
    return float(1.0 / speed)


@nb.njit(cache=True, nogil=True)
def balance(
    x: Arrays, lean: IntArray, rows: IntArray, in_flight: IntArray, limits: IntArray
) -> tuple[float, IntArray, IntArray]:
    """Smallest possible largest F + B, with the option row and the cuts of every stage.

    lean[i, :]: modes of stage i that decide what it can hold; rows[i, :]: all modes, of which it
    runs the first of the fastest that fit.

    Infinite when the layers do not fit into the memory of these stages.
    """
    p = len(rows)
    cuts = np.zeros(p + 1, np.int64)
    chosen = np.full(p, -1, np.int64)
    trial = np.zeros(p + 1, np.int64)
    if not fill(x, lean, in_flight, limits, np.inf, trial):
        return np.inf, chosen, cuts
    cuts[:] = trial
    high = fastest_rows(x, rows, in_flight, cuts, chosen)
    low = _mean_seconds(x, lean)
    for _ in range(BISECTIONS):
        if high - low <= TOLERANCE * high:
            break
        tau = 0.5 * (low + high)
        if fill(x, lean, in_flight, limits, tau, trial):
            cuts[:] = trial
            high = min(high, fastest_rows(x, rows, in_flight, cuts, chosen))
        else:
            low = tau
    return fastest_rows(x, rows, in_flight, cuts, chosen), chosen, cuts
