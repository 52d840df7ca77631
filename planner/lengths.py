"""How many stages of each pool, and under which degrees, make the quickest chain: a kernel.

For a limit tau on F + B of every stage a stage at position j from the end holds at most
``cap(d, j)`` layers under degrees d (time, and memory with the micro-batches in flight there). A
dynamic program from the last stage forward finds the most layers that j stages over the last
pools of an order hold; the smallest number of stages P that holds all L gives the time
``(m + P - 1) tau``. Layers count as alike here, as many as the costliest layer goes into all of
them; the balance that follows deals the real ones.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from planner.arrays import Arrays, FloatArray, IntArray

STEP = 1.03
"""Ratio between two limits tau that are tried."""

MAX_STEPS = 60


class Choices(NamedTuple):
    """Degrees in the order of the pools: rows of their modes (D, M) padded with -1; rest (D,).

    place: position of the pool in the order. groups: stages that its chips allow for one copy.
    """

    rows: IntArray
    place: IntArray
    groups: IntArray


@nb.njit(cache=True, nogil=True)
def _equal_layers(x: Arrays, choices: Choices) -> int:
    """Layers as costly as the costliest one that are the work of all layers, rounded up."""
    o = choices.rows[0, 0]
    L = x.forward.shape[1] - 1
    most = 0.0
    for i in range(L):
        layer = x.forward[o, i + 1] - x.forward[o, i] + x.backward[o, i + 1] - x.backward[o, i]
        most = max(most, layer)
    return max(1, int(np.ceil((x.forward[o, L] + x.backward[o, L]) / most - 1e-6)))


@nb.njit(cache=True, nogil=True)
def _memory_caps(x: Arrays, choices: Choices, kept: IntArray, count: int) -> IntArray:
    """Layers that fit under each mode at each position from the end, (D, M, P + 1)."""
    D, M = choices.rows.shape
    L = x.forward.shape[1] - 1
    caps = np.zeros((D, M, len(kept)), np.int64)
    for d in range(D):
        for v in range(M):
            o = choices.rows[d, v]
            if o < 0:
                continue
            static = (x.dense[o, L] * x.dense_bytes[o] + x.expert[o, L] * x.expert_bytes[o]) / count
            room = x.budget[o] - x.transient_peak[o]
            for j in range(1, len(kept)):
                left = room
                if j == 1:
                    left -= x.last_dense[o] * x.dense_bytes[o] + x.last_kept[o]
                each = static + kept[j] * x.kept[o, L] / count
                caps[d, v, j] = max(0, min(count, int(left / each)))
    return caps


@nb.njit(cache=True, nogil=True)
def _in_time(x: Arrays, choices: Choices, count: int, tau: float) -> IntArray:
    """Layers that a stage runs within tau under each mode, (2, D, M): the last stage, any other."""
    D, M = choices.rows.shape
    L = x.forward.shape[1] - 1
    held = np.zeros((2, D, M), np.int64)
    for d in range(D):
        for v in range(M):
            o = choices.rows[d, v]
            if o >= 0:
                each = (x.forward[o, L] + x.backward[o, L]) / count
                last = tau - x.last_forward[o] - x.last_backward[o]
                held[0, d, v] = int(last / each * (1 + 1e-9))
                held[1, d, v] = int(tau / each * (1 + 1e-9))
    return held


@nb.njit(cache=True, nogil=True)
def _runs(in_time: IntArray, memory: IntArray, deepest: int) -> IntArray:
    """[0, d, j]: layers of stages 1..j under degrees d; [1, d, j]: start of the run that j ends.

    A run ends where a stage would hold nothing. Shape (2, D, deepest + 1).
    """
    D, M, _ = memory.shape
    runs = np.zeros((2, D, deepest + 1), np.int64)
    for d in range(D):
        for j in range(1, deepest + 1):
            best = 0
            for v in range(M):
                best = max(best, min(memory[d, v, j], in_time[min(j - 1, 1), d, v]))
            runs[0, d, j] = runs[0, d, j - 1] + best
            runs[1, d, j] = j if best == 0 else runs[1, d, j - 1]
    return runs


@nb.njit(cache=True, nogil=True)
def _most_layers(choices: Choices, runs: IntArray, taken: IntArray) -> IntArray:
    """Most layers of j stages over all pools; taken[k, j] = (degrees, stages) of pool k.

    Pools are visited from the last to the first; -1 where j stages cannot be had.
    """
    sums, first = runs
    P = sums.shape[1]
    most = np.full(P, -1, np.int64)
    most[0] = 0
    for k in range(len(taken) - 1, -1, -1):
        better = most.copy()
        taken[k, :, 0] = -1
        taken[k, :, 1] = 0
        for d in range(len(choices.place)):
            if choices.place[d] != k:
                continue
            for j in range(1, P):
                for before in range(max(first[d, j], j - choices.groups[d]), j):
                    if most[before] >= 0:
                        held = most[before] + sums[d, j] - sums[d, before]
                        if held > better[j]:
                            better[j] = held
                            taken[k, j, 0] = d
                            taken[k, j, 1] = j - before
        most = better
    return most


@nb.njit(cache=True, nogil=True)
def quickest(
    x: Arrays, choices: Choices, kept: IntArray, microbatches: int, limit_s: float
) -> tuple[FloatArray, IntArray]:
    """Times and (degrees, stages) of each pool of the chains found, (N,) and (N, pools, 2).

    kept[j]: micro-batches in flight at position j from the end; their number less one is the
    deepest chain. limit_s: chains that take longer are left out.
    """
    P, pools = len(kept), int(choices.place.max()) + 1
    count = _equal_layers(x, choices)
    tau = _least_limit(x, choices, pools)
    if microbatches * tau > limit_s:
        return np.zeros(0), np.zeros((0, pools, 2), np.int64)
    memory = _memory_caps(x, choices, kept, count)
    taken = np.zeros((pools, P, 2), np.int64)
    times = np.full(MAX_STEPS, np.inf)
    chains = np.zeros((MAX_STEPS, pools, 2), np.int64)
    deepest, best = P, limit_s
    for step in range(MAX_STEPS):
        if microbatches * tau > best:
            break
        reach = min(deepest - 1, _within(best, tau, microbatches, P - 1))
        runs = _runs(_in_time(x, choices, count, tau), memory, reach)
        if _least_depth(runs[0], count) > reach:
            tau *= STEP
            continue
        most = _most_layers(choices, runs, taken)
        depth = 0
        while depth <= reach and most[depth] < count:
            depth += 1
        if depth <= reach:
            deepest = depth
            times[step] = (microbatches + depth - 1) * tau
            best = min(best, times[step] * 1.1)
            j = depth
            for k in range(pools):
                chains[step, k] = taken[k, j]
                j -= taken[k, j, 1]
        tau *= STEP
    found = np.flatnonzero((times <= limit_s) & (times < np.inf))
    return times[found], chains[found]


@nb.njit(cache=True, nogil=True)
def _within(seconds: float, tau: float, microbatches: int, most: int) -> int:
    """Most stages P <= most with ``(m + P - 1) tau <= seconds``."""
    if seconds == np.inf:
        return most
    return min(most, int(seconds / tau * (1 + 1e-12)) - microbatches + 1)


@nb.njit(cache=True, nogil=True)
def _least_depth(sums: IntArray, layers: int) -> int:
    """No fewer stages hold all layers, were each as large as the largest of its position."""
    left = layers
    for j in range(1, sums.shape[1]):
        most = 0
        for d in range(len(sums)):
            most = max(most, sums[d, j] - sums[d, j - 1])
        left -= most
        if left <= 0:
            return j
    return int(sums.shape[1])


@nb.njit(cache=True, nogil=True)
def _least_limit(x: Arrays, choices: Choices, pools: int) -> float:
    """The layers over the summed speeds of all stages that the pools allow for."""
    L = x.forward.shape[1] - 1
    speeds = np.zeros(pools)
    for d in range(len(choices.place)):
        for v in range(choices.rows.shape[1]):
            o = choices.rows[d, v]
            if o >= 0:
                speed = choices.groups[d] / (x.forward[o, L] + x.backward[o, L])
                speeds[choices.place[d]] = max(speeds[choices.place[d]], speed)
    return float(1.0 / max(speeds.sum(), 1e-30))
