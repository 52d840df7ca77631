"""A bound on every interleaved chain of one set of degrees, copies and stages.

Symbols of ``docs/theory/interleaving.md``: stage i works U_i a micro-batch, all chunks together;
H_i, forward and back, is what a micro-batch needs from the first stage to stage i through the
first chunks; y_i follows the last backward. No layout of p stages takes less than

    T >= overhead + max_i max(H_i + m U_i + y_0, forward part of H_i + m U_i + y_i)

so T seconds allow stage i at most so many layers, and the stages that the chips make have to hold
all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from planner.arrays import FloatArray, IntArray
from planner.interleaving.kept import kept_floors
from planner.interleaving.terms import Field

SLACK = 1e-9
BISECTIONS = 12
ROUNDS = 3
NOWHERE = -1e9
"""Room of a stage that cannot hold a layer of every chunk."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Chain:
    """The chains of one field with p stages of some numbers of chunks. room: layers, (p, K)."""

    field: Field
    depth: int
    chunks: tuple[int, ...]
    room: FloatArray

    @property
    def places(self) -> IntArray:
        """Place of every stage: 0 inner, 1 first, 2 last, (p,)."""
        places = np.zeros(self.depth, np.int64)
        places[0], places[-1] = 1, 2
        return places


def chain_of(field: Field, depth: int, chunks: Sequence[int]) -> Chain:
    """Chains of so many stages, each with one of these numbers of chunks."""
    room = np.full((depth, len(field.work)), NOWHERE)
    for v in chunks:
        room = np.maximum(room, _memory_room(field, depth, v))
    return Chain(field=field, depth=depth, chunks=tuple(chunks), room=room)


def _memory_room(field: Field, p: int, v: int) -> FloatArray:
    """Layers that each stage has room for at most, (p, K)."""
    least = float(field.weights.min())
    room = np.empty((p, len(field.work)))
    for i in range(p):
        place = 1 if i == 0 else 2 if i == p - 1 else 0
        free = field.room * (1 + SLACK) - field.held[place]
        caps = [
            (free - const * least * field.kept)
            / np.maximum(field.static + each * field.kept, 1e-300)
            for const, each in kept_floors(p, i, field.cell.microbatches, v)
        ]
        most = np.min(caps, axis=0)
        room[i] = np.where(most < v * least * (1 - SLACK), NOWHERE, most)
    return room


FOREVER_S = 1e9


def has_room(chain: Chain) -> bool:
    """Whether the chips' memory may hold all layers, however long it takes."""
    return _holds_all(chain, FOREVER_S)


def chain_bound(chain: Chain, low_s: float, high_s: float) -> float:
    """Seconds that no layout of the chain takes less than; ``high_s`` where it is at least that."""
    if not _holds_all(chain, high_s):
        return high_s
    low, high = low_s, high_s
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _holds_all(chain, middle) else (middle, high)
    return low * (1 - SLACK)


def _holds_all(chain: Chain, seconds: float) -> bool:
    """Whether T seconds may be enough. y_0 is that of the layers that stage 0 has to hold then."""
    size = chain.field.size
    first = 0.0
    for _ in range(ROUNDS):
        most = most_layers(chain, seconds, first)
        total, others = _assigned(chain, most)
        if total < size * (1 - SLACK):
            return False
        least = max(0.0, size - others)
        if least <= first * (1 + SLACK):
            return True
        first = least
    return True


def most_layers(chain: Chain, seconds: float, first: float) -> FloatArray:
    """Layers that each stage can hold at most under each option, (p, K).

    first: layers that stage 0 holds at least.
    """
    field, m, p = chain.field, chain.field.cell.microbatches, chain.depth
    ahead, both = field.first_chunk.min(axis=0)
    stage = np.arange(p, dtype=np.float64)[:, None]
    after_first = (field.after[1, :, :, 0] + field.after[1, :, :, 1] * first).max(axis=1).min()
    left = seconds - field.costs.overhead[0] - m * field.ends[chain.places]
    whole = left - stage * (both + 2.0 * field.hop) - max(0.0, float(after_first))
    most = np.minimum(whole / (m * field.work), chain.room)
    part = left - stage * (ahead + field.hop)
    for piece in range(field.after.shape[2]):
        base, slope = np.moveaxis(field.after[chain.places][:, :, piece], -1, 0)
        most = np.minimum(most, (part - base) / (m * field.work + slope))
    if field.whole:
        most = np.floor(most * (1 + SLACK) + SLACK)
    return np.where(most < min(chain.chunks) * field.weights.min() * (1 - SLACK), NOWHERE, most)


def _assigned(chain: Chain, most: FloatArray) -> tuple[float, float]:
    """Most layers of all stages, and of all but the first; each pool has so many stages."""
    units = np.minimum(chain.field.units, chain.depth).astype(np.int64)
    wide = np.repeat(most, units, axis=1)
    if wide.shape[1] < chain.depth:
        return NOWHERE, NOWHERE
    rows, columns = linear_sum_assignment(wide, maximize=True)
    others = wide[1:]
    own, where = linear_sum_assignment(others, maximize=True)
    return float(wide[rows, columns].sum()), float(others[own, where].sum())


def pools_of_stages(chain: Chain, most: FloatArray) -> IntArray:
    """Option of every stage in the assignment that holds most, (p,)."""
    units = np.minimum(chain.field.units, chain.depth).astype(np.int64)
    rows, columns = linear_sum_assignment(np.repeat(most, units, axis=1), maximize=True)
    return np.repeat(np.arange(len(units)), units)[columns[np.argsort(rows)]]


def quick_bound(speed: FloatArray, ramp_s: FloatArray, m: int, size: float) -> float:
    """Seconds without memory, ends, and what follows; speed: of p stages in layers a second.

    Stages begin later one after the other; the fastest come first at best:
    ``sum_i s_i (T - H_i) / m >= layers``.
    """
    ordered = np.sort(speed)[::-1]
    return float((m * size + (ordered * ramp_s).sum()) / ordered.sum()) * (1 - SLACK)
