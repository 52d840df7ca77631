"""Interleaved stages: the costs of each chunk, and what a stage keeps while its passes run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from costmodel.layout.values import Stage
from costmodel.schedules.kind import Order, Passes, Phase, Program
from costmodel.stage.sums import ends_of, totals
from costmodel.stage.table import StageTable

ENOUGH = 4
"""Micro-batches a stage after which a schedule repeats itself."""


class ChunkCosts(NamedTuple):
    """Seconds and kept bytes of one micro-batch in one chunk of a stage, on one chip.

    deferred_bytes: kept between the two parts of a backward instead of activation_bytes.
    """

    forward_s: float
    backward_s: float
    activation_bytes: float
    forward_tp_s: float = 0.0
    forward_cp_s: float = 0.0
    forward_ep_s: float = 0.0
    backward_tp_s: float = 0.0
    backward_cp_s: float = 0.0
    backward_ep_s: float = 0.0
    weight_gradient_s: float = 0.0
    deferred_bytes: float = 0.0


class Keeps(Protocol):
    """Bytes of one micro-batch in a chunk, on one chip."""

    @property
    def activation_bytes(self) -> float:
        """Between forward and backward."""
        ...

    @property
    def deferred_bytes(self) -> float:
        """Between the two parts of the backward."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Peak over a step: the most micro-batch chunks that a stage keeps, and the most bytes."""

    chunks: int
    activation_bytes: float


def chunk_costs(table: StageTable, row: int, stage: Stage) -> tuple[ChunkCosts, ...]:
    """``chunks_of`` one stage."""
    return chunks_of(table, [row], [stage])[0]


def chunks_of(
    table: StageTable, rows: Sequence[int], stages: Sequence[Stage]
) -> list[tuple[ChunkCosts, ...]]:
    """Costs of the chunks of each stage in order.

    The embedding runs with the first chunk, head and multi-token prediction with the last.
    """
    own = [row for row, stage in zip(rows, stages, strict=True) for _ in stage.chunks]
    runs = [(n, *run) for n, run in enumerate(run for stage in stages for run in stage.chunks)]
    stops = list(accumulate(len(stage.chunks) for stage in stages))
    ends = [
        (stop - (len(stage.chunks) if terms is table.embedding else 1), terms)
        for stop, stage in zip(stops, stages, strict=True)
        for terms in ends_of(table, stage)
    ]
    total = totals(table, own, runs, ends, ChunkCosts._fields)
    costs = list(map(ChunkCosts, *(total[name].tolist() for name in ChunkCosts._fields)))
    return [tuple(costs[start:stop]) for start, stop in pairwise((0, *stops))]


def kept(order: Order | Passes, chunks: Sequence[Keeps]) -> Kept:
    """What is alive at the worst moment: forwards done whose backward, or last part, has not ended.

    While the weight gradients of a micro-batch are put off, it holds its ``deferred_bytes``.
    """
    held, most, in_flight, peak = 0.0, 0.0, 0, 0
    for phase, nth, *_ in order:
        chunk = chunks[nth]
        if phase == Phase.FORWARD:
            held, in_flight = held + chunk.activation_bytes, in_flight + 1
        elif phase == Phase.INPUT:
            held += chunk.deferred_bytes - chunk.activation_bytes
        else:
            given_up = chunk.deferred_bytes if phase == Phase.WEIGHT else chunk.activation_bytes
            held, in_flight = held - given_up, in_flight - 1
        most, peak = max(most, held), max(peak, in_flight)
    return Kept(chunks=peak, activation_bytes=most)


def kept_interleaved(counts: NDArray[np.int64], chunks: Sequence[Keeps]) -> Kept:
    """The same from the micro-batches alive in each chunk at the worst moments, (moments, v)."""
    held = counts @ np.array([chunk.activation_bytes for chunk in chunks])
    return Kept(chunks=int(counts.sum(axis=1).max()), activation_bytes=float(held.max()))


def kept_apart(program: Program, shape: tuple[int, int, int], chunks: Sequence[Keeps]) -> Kept:
    """The same with weight gradients apart. shape: stages, this stage, micro-batches.

    Passes repeat in the middle, so that ``ENOUGH`` micro-batches a stage show all there is.
    """
    num_stages, stage, microbatches = shape
    shown = num_stages, stage, min(microbatches, ENOUGH * num_stages)
    if program.chunks > 1:
        return kept(program.order(*shown), chunks)
    (costs,), counts = chunks, _most_counts(program, *shown)
    return Kept(
        chunks=max(whole + parts for whole, parts in counts),
        activation_bytes=max(
            whole * costs.activation_bytes + parts * costs.deferred_bytes for whole, parts in counts
        ),
    )


@lru_cache(maxsize=100_000)
def _most_counts(
    program: Program, num_stages: int, stage: int, microbatches: int
) -> tuple[tuple[int, int], ...]:
    """(micro-batches kept whole, those with weights put off) of which no pair has more of both."""
    whole = parts = 0
    found = {(0, 0)}
    for phase, *_ in program.order(num_stages, stage, microbatches):
        whole += (phase == Phase.FORWARD) - (phase in (Phase.BACKWARD, Phase.INPUT))
        parts += (phase == Phase.INPUT) - (phase == Phase.WEIGHT)
        found.add((whole, parts))
    return tuple(
        (a, b)
        for a, b in sorted(found)
        if not any((c, d) != (a, b) and c >= a and d >= b for c, d in found)
    )
