"""Chooses layers, recompute mode and ZeRO stage of every stage, given its degrees.

The stages of a pipeline are balanced: the largest F + B is minimised under the memory of each
stage at its place in the pipeline. Holding more layers never takes less time or memory, so for a
limit tau it is best that every stage in turn takes as many layers as it can (exchange argument),
and tau is found by bisection.
"""

import numba as nb
import numpy as np

from planner.arrays import Arrays, FloatArray, IntArray

BIG = float("inf")
BISECTIONS = 24
TOLERANCE = 1e-3

WORK, STATIC, KEPT, TRANSIENT = 0, 1, 2, 3
"""What a packed option says of layers (prefix sums but for the last) and of each end."""

FIRST, LAST, TIED, BUDGET, PEAK = 0, 4, 8, 9, 10
"""Where the four numbers of each end begin, and single numbers."""


@nb.njit(cache=True, nogil=True)
def _local(rows: IntArray, known: IntArray) -> IntArray:
    """The rows as indices into ``known``; padding stays -1."""
    ids = np.full(rows.shape, -1, np.int64)
    for i in range(rows.shape[0]):
        for v in range(rows.shape[1]):
            for k in range(len(known)):
                if rows[i, v] == known[k]:
                    ids[i, v] = k
    return ids


@nb.njit(cache=True, nogil=True)
def _packed(x: Arrays, known: IntArray) -> tuple[FloatArray, FloatArray]:
    """The options in use, few and side by side: (R, 4, L + 1) and (R, 11).

    Compiled functions take two arrays much faster than all of ``Arrays``.
    """
    L = x.forward.shape[1] - 1
    layers, ends = np.zeros((len(known), 4, L + 1)), np.zeros((len(known), 11))
    for k in range(len(known)):
        o = known[k]
        dense, expert = x.dense_bytes[o], x.expert_bytes[o]
        layers[k, WORK] = x.forward[o] + x.backward[o]
        layers[k, STATIC] = x.dense[o] * dense + x.expert[o] * expert
        layers[k, KEPT] = x.kept[o]
        layers[k, TRANSIENT, :L] = x.transient[o]
        ends[k, FIRST + WORK] = x.first_forward[o] + x.first_backward[o]
        ends[k, FIRST + STATIC] = x.first_dense[o] * dense + x.first_expert[o] * expert
        ends[k, FIRST + KEPT] = x.first_kept[o]
        ends[k, FIRST + TRANSIENT] = x.first_transient[o]
        ends[k, LAST + WORK] = x.last_forward[o] + x.last_backward[o]
        ends[k, LAST + STATIC] = x.last_dense[o] * dense + x.last_expert[o] * expert
        ends[k, LAST + KEPT] = x.last_kept[o]
        ends[k, LAST + TRANSIENT] = x.last_transient[o]
        ends[k, TIED] = x.tied[o] * dense
        ends[k, BUDGET] = x.budget[o]
        ends[k, PEAK] = x.transient_peak[o]
    return layers, ends


@nb.njit(cache=True, nogil=True)
def _seconds(layers: FloatArray, ends: FloatArray, o: int, a: int, b: int) -> float:
    """F + B of one micro-batch on layers [a, b), with the ends they touch."""
    seconds = layers[o, WORK, b] - layers[o, WORK, a]
    if a == 0:
        seconds += ends[o, FIRST + WORK]
    if b == layers.shape[2] - 1:
        seconds += ends[o, LAST + WORK]
    return float(seconds)


@nb.njit(cache=True, nogil=True)
def _fits(layers: FloatArray, ends: FloatArray, o: int, a: int, b: int, in_flight: int) -> bool:
    """Whether layers [a, b) fit the option's memory; see ``planner.arrays.stage_bytes``."""
    L = layers.shape[2] - 1
    static = layers[o, STATIC, b] - layers[o, STATIC, a]
    kept = layers[o, KEPT, b] - layers[o, KEPT, a]
    transient = 0.0
    if a == 0:
        static += ends[o, FIRST + STATIC]
        kept += ends[o, FIRST + KEPT]
        transient = ends[o, FIRST + TRANSIENT]
    if b == L:
        static += ends[o, LAST + STATIC]
        kept += ends[o, LAST + KEPT]
        transient = max(transient, ends[o, LAST + TRANSIENT])
    if a == 0 and b == L:
        static -= ends[o, TIED]
    room = ends[o, BUDGET] - (static + in_flight * kept)
    if max(transient, ends[o, PEAK]) <= room:
        return True
    for layer in range(a, b):
        transient = max(transient, layers[o, TRANSIENT, layer])
    return bool(transient <= room)


@nb.njit(cache=True, nogil=True)
def _reach(
    packed: tuple[FloatArray, FloatArray], o: int, span: tuple[int, int, int], kept: int, tau: float
) -> int:
    """Largest b in (known, stop] such that o runs [a, b) within tau and memory, else known.

    span: a, known, stop.
    """
    layers, ends = packed
    a, known, stop = span
    low, high = known, stop
    while low < high:
        b = (low + high + 1) // 2
        if _seconds(layers, ends, o, a, b) <= tau:
            low = b
        else:
            high = b - 1
    if low == known or _fits(layers, ends, o, a, low, kept):
        return low
    low, high = known, low - 1
    while low < high:
        b = (low + high + 1) // 2
        if _fits(layers, ends, o, a, b, kept):
            low = b
        else:
            high = b - 1
    return low


@nb.njit(cache=True, nogil=True)
def _fill(
    packed: tuple[FloatArray, FloatArray],
    rows: IntArray,
    in_flight: IntArray,
    limits: IntArray,
    tau: float,
    cuts: IntArray,
) -> bool:
    """Whether all layers fit within tau; writes the cuts. Stage i may run any of rows[i, :] >= 0.

    limits[0, i] <= cuts[i + 1] <= limits[1, i].
    """
    p, L = len(rows), packed[0].shape[2] - 1
    cuts[0] = 0
    for i in range(p):
        a = cuts[i]
        stop = min(limits[1, i], L - (p - 1 - i))
        best = a
        for v in range(rows.shape[1]):
            if rows[i, v] >= 0 and best < stop:
                best = _reach(packed, rows[i, v], (a, best, stop), in_flight[i], tau)
        if best == a or best < limits[0, i]:
            return False
        cuts[i + 1] = best
    return bool(cuts[p] == L)


@nb.njit(cache=True, nogil=True)
def _fastest_rows(
    packed: tuple[FloatArray, FloatArray],
    rows: IntArray,
    in_flight: IntArray,
    cuts: IntArray,
    chosen: IntArray,
) -> float:
    """Largest F + B when every stage runs its fastest option that fits; infinite if none fits."""
    layers, ends = packed
    slowest = 0.0
    for i in range(len(rows)):
        best = BIG
        for v in range(rows.shape[1]):
            o = rows[i, v]
            if o < 0:
                continue
            seconds = _seconds(layers, ends, o, cuts[i], cuts[i + 1])
            if seconds < best * (1 - 1e-9) and _fits(
                layers, ends, o, cuts[i], cuts[i + 1], in_flight[i]
            ):
                best = seconds
                chosen[i] = o
        slowest = max(slowest, best)
    return slowest


@nb.njit(cache=True, nogil=True)
def _mean_seconds(layers: FloatArray, rows: IntArray) -> float:
    """No largest F + B is below the layers over the summed speeds of the stages."""
    L = layers.shape[2] - 1
    speed = 0.0
    for i in range(len(rows)):
        least = np.inf
        for v in range(rows.shape[1]):
            if rows[i, v] >= 0:
                least = min(least, layers[rows[i, v], WORK, L])
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
    cuts, trial = np.zeros(p + 1, np.int64), np.zeros(p + 1, np.int64)
    chosen = np.full(p, -1, np.int64)
    known = np.unique(np.append(lean.ravel(), rows.ravel()))
    known = known[known >= 0]
    packed = _packed(x, known)
    holding, running = _local(lean, known), _local(rows, known)
    if not _fill(packed, holding, in_flight, limits, np.inf, trial):
        return np.inf, chosen, cuts
    cuts[:] = trial
    high = _fastest_rows(packed, running, in_flight, cuts, chosen)
    low = _mean_seconds(packed[0], holding)
    for _ in range(BISECTIONS):
        if high - low <= TOLERANCE * high:
            break
        tau = 0.5 * (low + high)
        if _fill(packed, holding, in_flight, limits, tau, trial):
            cuts[:] = trial
            high = min(high, _fastest_rows(packed, running, in_flight, cuts, chosen))
        else:
            low = tau
    slowest = _fastest_rows(packed, running, in_flight, cuts, chosen)
    for i in range(p):
        chosen[i] = known[chosen[i]] if chosen[i] >= 0 else -1
    return slowest, chosen, cuts
