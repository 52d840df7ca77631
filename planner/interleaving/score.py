"""Step time of an interleaved chain, as the evaluator gives it, from prefix sums."""

from functools import lru_cache

import numpy as np

from costmodel.schedules.interleaved import simulate
from costmodel.stage.in_flight import most_counts
from planner.arrays import FloatArray, IntArray
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


def step_seconds(x: Costs, rows: IntArray, sizes: IntArray, microbatches: int) -> float:
    """Step time of copies of the chain; infinite when a stage does not fit.

    rows: option of each stage, (p,). sizes: layers of each chunk, (v, p).
    """
    v, p = sizes.shape
    chunks = _chunks(x, rows, sizes)
    stages = chunks.reshape(len(chunks), v, p)
    held = stages[STATIC].sum(axis=0) + stages[TRANSIENT].max(axis=0)
    for i in range(p):
        kept = (_counts(p, i, microbatches, v) @ stages[KEPT, :, i]).max()
        if held[i] + kept > x.room[rows[i]] * (1 + 1e-12):
            return float("inf")
    hops = np.resize(x.hop[rows, np.roll(rows, -1)], p * v)[:-1]
    forward = chunks[FORWARD] + x.overhead[1] / v
    ends = simulate(forward, chunks[BACKWARD], hops, hops, microbatches, v)[1]
    return float((ends + _after(x, rows, stages.sum(axis=1))).max() + x.overhead[0])


@lru_cache(maxsize=65536)
def _counts(p: int, i: int, m: int, v: int) -> IntArray:
    return most_counts(p, i, m, v)


def _chunks(x: Costs, rows: IntArray, sizes: IntArray) -> FloatArray:
    """The columns of ``Costs`` for each chunk in the order of layers, (8, p v)."""
    flat = sizes.ravel()
    stops = np.cumsum(flat)
    own = np.tile(rows, len(sizes))
    chunks = x.layers[:, own, stops] - x.layers[:, own, stops - flat]
    buffers = x.layers[TRANSIENT, np.repeat(own, flat), np.arange(stops[-1])]
    chunks[TRANSIENT] = np.maximum.reduceat(buffers, stops - flat)
    for at, end in ((0, x.first), (-1, x.last)):
        own_end = end[own[at]].copy()
        own_end[TRANSIENT] = max(0.0, own_end[TRANSIENT] - chunks[TRANSIENT, at])
        chunks[:, at] += own_end
    return np.ascontiguousarray(chunks)


def _after(x: Costs, rows: IntArray, stages: FloatArray) -> FloatArray:
    """``planner.families.score.after_s`` of every stage, (p,)."""
    hidden, least = x.exposed
    after = stages[UPDATE].copy()
    for column, way, half in ((REDUCE, BACKWARD, 0), (GATHER, FORWARD, 1)):
        seconds = stages[column] + x.latency[rows, half]
        after += np.maximum(least * seconds, seconds - hidden * stages[way])
    return after
