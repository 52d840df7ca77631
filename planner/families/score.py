"""The step time of a chain, as the evaluator gives it: compiled, for the moves of a search."""

import numba as nb
import numpy as np

from costmodel.schedules.one_f_one_b import simulate
from planner.arrays import IntArray
from planner.families.costs import (
    BACKWARD,
    FORWARD,
    GATHER,
    KEPT,
    REDUCE,
    STATIC,
    TRANSIENT,
    UPDATE,
    Costs,
)


@nb.njit(cache=True, nogil=True)
def column(x: Costs, kind: int, r: int, a: int, b: int) -> float:
    """A column of a stage with layers [a, b) under option r, and of the ends that it touches."""
    total = x.layers[kind, r, b] - x.layers[kind, r, a]
    if a == 0:
        total += x.first[r, kind]
    if b == x.layers.shape[2] - 1:
        total += x.last[r, kind]
        if a == 0:
            total -= x.shared[r, kind]
    return total


@nb.njit(cache=True, nogil=True)
def work_s(x: Costs, r: int, a: int, b: int) -> float:
    """Forward and backward of one micro-batch, with its overhead."""
    return column(x, FORWARD, r, a, b) + column(x, BACKWARD, r, a, b) + x.overhead[1]


@nb.njit(cache=True, nogil=True)
def most_in_flight(x: Costs, r: int, a: int, b: int) -> float:
    """Micro-batches whose activations a chip has room for beside everything else."""
    L = x.layers.shape[2] - 1
    buffers = 0.0
    for layer in range(a, b):
        buffers = max(buffers, x.layers[TRANSIENT, r, layer])
    if a == 0:
        buffers = max(buffers, x.first[r, TRANSIENT])
    if b == L:
        buffers = max(buffers, x.last[r, TRANSIENT])
    left = x.room[r] - column(x, STATIC, r, a, b) - buffers
    if left < 0.0:
        return 0.0
    return left / max(column(x, KEPT, r, a, b), 1e-300)


@nb.njit(cache=True, nogil=True)
def after_s(x: Costs, r: int, a: int, b: int) -> float:
    """Exposed gradient sum and parameter gather, and the update, after the last backward."""
    reduce_s = column(x, REDUCE, r, a, b) + x.latency[r, 0]
    gather_s = column(x, GATHER, r, a, b) + x.latency[r, 1]
    hidden, least = x.exposed
    shown = max(least * reduce_s, reduce_s - hidden * column(x, BACKWARD, r, a, b))
    shown += max(least * gather_s, gather_s - hidden * column(x, FORWARD, r, a, b))
    return shown + column(x, UPDATE, r, a, b)


@nb.njit(cache=True, nogil=True)
def fastest(x: Costs, modes: IntArray, a: int, b: int, in_flight: int) -> int:
    """The first of these options (fastest first, padded with -1) that has room; -1 if none."""
    for v in range(len(modes)):
        r = modes[v]
        if r < 0:
            break
        if most_in_flight(x, r, a, b) * (1 + 1e-12) >= in_flight:
            return r
    return -1


@nb.njit(cache=True, nogil=True)
def step_s(x: Costs, rows: IntArray, cuts: IntArray, microbatches: int) -> float:
    """Step time of copies of the chain that runs option rows[i] on [cuts[i], cuts[i + 1])."""
    p = len(rows)
    forward, backward = np.empty(p), np.empty(p)
    hops = np.empty(max(p - 1, 0))
    for i in range(p):
        forward[i] = column(x, FORWARD, rows[i], cuts[i], cuts[i + 1]) + x.overhead[1]
        backward[i] = column(x, BACKWARD, rows[i], cuts[i], cuts[i + 1])
        if i < p - 1:
            hops[i] = x.hop[rows[i], rows[i + 1]]
    ends = simulate(forward, backward, hops, hops, microbatches)[1]
    last = 0.0
    for i in range(p):
        last = max(last, ends[i] + after_s(x, rows[i], cuts[i], cuts[i + 1]))
    return last + x.overhead[0]
