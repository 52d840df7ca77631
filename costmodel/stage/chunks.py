"""Interleaved stages: the costs of each chunk, and what a stage keeps while its passes run."""

from dataclasses import dataclass

from costmodel.layout.values import Stage
from costmodel.schedules.kind import Order
from costmodel.stage.table import StageTable, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCosts:
    """Seconds and kept bytes of one micro-batch in one chunk of a stage, on one chip."""

    forward_s: float
    backward_s: float
    activation_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Peak over a step: the most micro-batch chunks that a stage keeps, and the most bytes."""

    chunks: int
    activation_bytes: float


def chunk_costs(table: StageTable, row: int, stage: Stage) -> tuple[ChunkCosts, ...]:
    """Costs of the stage's chunks in order.

    The embedding runs with the first chunk, head and multi-token prediction with the last.
    """
    last = len(stage.chunks) - 1

    def costs(nth: int, start: int, stop: int) -> ChunkCosts:
        ends: list[Terms] = [table.embedding] if stage.embedding and nth == 0 else []
        ends += [table.head] if stage.head and nth == last else []
        ends += [table.mtp] if stage.mtp > 0 and nth == last else []

        def total(name: str) -> float:
            prefix = getattr(table.layers, name)[row]
            own = prefix[stop] - prefix[start]
            return float(own + sum(getattr(end, name)[row] for end in ends))

        return ChunkCosts(
            forward_s=total("forward_s"),
            backward_s=total("backward_s"),
            activation_bytes=total("activation_bytes"),
        )

    return tuple(costs(nth, start, stop) for nth, (start, stop) in enumerate(stage.chunks))


def kept(order: Order, chunks: tuple[ChunkCosts, ...]) -> Kept:
    """What is alive at the worst moment: forwards done whose backward has not ended."""
    held, most, in_flight, peak = 0.0, 0.0, 0, 0
    for is_backward, nth, _ in order:
        sign = -1 if is_backward else 1
        held, in_flight = held + sign * chunks[nth].activation_bytes, in_flight + sign
        most, peak = max(most, held), max(peak, in_flight)
    return Kept(chunks=peak, activation_bytes=most)
