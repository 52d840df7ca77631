"""Deals layers to the chunks of a chain and moves them about, judged by the exact step time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.arrays import IntArray
from planner.families.costs import Costs
from planner.instance import Draft, Entry, Template
from planner.interleaving.bound import FOREVER_S, Chain, most_layers
from planner.interleaving.score import step_seconds
from planner.interleaving.terms import Field

BISECTIONS = 20
GAIN = 1e-9
"""Relative improvement from which a move is taken."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Dealt:
    """A chain with its layers: its step time, options of the stages, layers of chunks, (v, p)."""

    seconds: float
    rows: IntArray
    sizes: IntArray


def dealt(chain: Chain, rows: IntArray, chunks: int) -> Dealt | None:
    """The chain with its layers dealt so that no stage is long; None where chunks are too many."""
    stages = _stage_layers(chain, rows)
    if stages is None:
        return None
    while stages.min() < chunks:
        if stages.max() <= chunks:
            return None
        stages[np.argmax(stages)] -= 1
        stages[np.argmin(stages)] += 1
    sizes = spread(stages, chunks)
    seconds = step_seconds(chain.field.costs, rows, sizes, chain.field.cell.microbatches)
    return Dealt(seconds=seconds, rows=rows, sizes=sizes)


def spread(stages: IntArray, chunks: int) -> IntArray:
    """Layers of each chunk when every stage spreads its own evenly, the later chunks more."""
    each, more = np.divmod(stages, chunks)
    later = np.arange(chunks)[:, None] >= chunks - more[None, :]
    return (each[None, :] + later).astype(np.int64)


def _stage_layers(chain: Chain, rows: IntArray) -> IntArray | None:
    """Layers of each stage at the least time in which the stages hold all; surplus taken back."""
    total = len(chain.field.weights)
    most = layers_in(chain, rows, FOREVER_S)
    if most.sum() < total:
        return None
    low, high = 0.0, 1.0
    while layers_in(chain, rows, high).sum() < total:
        low, high = high, 2.0 * high
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        enough = layers_in(chain, rows, middle).sum() >= total
        low, high = (low, middle) if enough else (middle, high)
    found = layers_in(chain, rows, high)
    while found.sum() > total:
        found[np.argmax(found * chain.field.work[rows])] -= 1
    return found


def layers_in(chain: Chain, rows: IntArray, seconds: float) -> IntArray:
    """Whole layers that the stages can hold at most in so many seconds, (p,)."""
    most = most_layers(chain, seconds, 0.0)[np.arange(len(rows)), rows]
    return np.floor(np.clip(most / chain.field.weights.mean(), 0.0, None) + 1e-9).astype(np.int64)


def climbed(x: Costs, start: Dealt, microbatches: int, limit: int) -> tuple[Dealt, int]:
    """The chain after moves of one layer that help, and the evaluations spent."""
    best, spent, improved = start, 0, True
    while improved and spent < limit:
        improved = False
        for sizes in _moves(best.sizes):
            seconds = step_seconds(x, best.rows, sizes, microbatches)
            spent += 1
            if seconds < best.seconds * (1 - GAIN):
                best, improved = Dealt(seconds=seconds, rows=best.rows, sizes=sizes), True
                break
            if spent >= limit:
                break
    return best, spent


def _moves(sizes: IntArray) -> Iterator[IntArray]:
    """A layer from one stage to another, and from one chunk of a stage to another."""
    v, p = sizes.shape
    for giver in range(p):
        out = v - 1 - int(np.argmax(sizes[::-1, giver]))
        for taker in range(p):
            if taker != giver and sizes[out, giver] > 1:
                into = v - 1 - int(np.argmin(sizes[::-1, taker]))
                yield _moved(sizes, (out, giver), (into, taker))
    for stage in range(p):
        for out in range(v):
            for into in range(v):
                if out != into and sizes[out, stage] > 1:
                    yield _moved(sizes, (out, stage), (into, stage))


def _moved(sizes: IntArray, giver: tuple[int, int], taker: tuple[int, int]) -> IntArray:
    found = sizes.copy()
    found[giver] -= 1
    found[taker] += 1
    return found


def draft_of(field: Field, found: Dealt) -> Draft:
    """The chain as the search's draft."""
    cuts = (0, *np.cumsum(found.sizes.ravel()).tolist())
    template = Template(rows=tuple(field.cell.rows[found.rows].tolist()), cuts=cuts)
    return (
        Entry(template=template, count=field.cell.copies, microbatches=field.cell.microbatches),
    )
