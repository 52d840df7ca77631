"""What a chip of a stage holds from pass to pass."""

from collections.abc import Iterable, Iterator

from costmodel.evaluation import StageMemory
from costmodel.schedules.kind import Phase
from costmodel.stage.chunks import ChunkCosts
from planner.trace.passes import Drawn


def held_bytes(
    memory: StageMemory, chunks: tuple[ChunkCosts, ...], passes: Iterable[Drawn]
) -> Iterator[tuple[int, float]]:
    """(nanosecond, bytes): activations come with a forward's start and go with a backward's end.

    What lasts and the largest short-lived buffers are counted throughout, so that the highest
    value is the predicted peak.
    """
    base = memory.peak - memory.activations
    held = 0.0
    yield 0, base
    for one in passes:
        costs = chunks[one.chunk]
        if one.phase is Phase.FORWARD:
            held += costs.activation_bytes
            yield one.span[0], base + held
            continue
        given_up = costs.activation_bytes
        if one.phase is Phase.INPUT:
            given_up -= costs.deferred_bytes
        elif one.phase is Phase.WEIGHT:
            given_up = costs.deferred_bytes
        held = max(0.0, held - given_up)
        yield one.span[1], base + held
