"""The passes of any schedule's stages and the ways that its micro-batches take."""

from functools import lru_cache

from costmodel.schedules.kind import Pass, Passes, Phase, Route, ScheduleKind

SPLIT_SHARE = 0.5
"""Weight gradients in a backward of matrix products: one of its two products."""


@lru_cache(maxsize=256)
def line(num_stages: int, chunks: int = 1) -> tuple[Route, ...]:
    """One way, round robin: chunk c of p v is on stage c mod p."""
    return (tuple((c % num_stages, c // num_stages) for c in range(num_stages * chunks)),)


@lru_cache(maxsize=256)
def vee(num_stages: int) -> tuple[Route, ...]:
    """One way, there and back: every stage's first chunk in order, then the second ones."""
    there = tuple((i, 0) for i in range(num_stages))
    return (there + tuple((i, 1) for i in reversed(range(num_stages))),)


@lru_cache(maxsize=256)
def both_ways(num_stages: int) -> tuple[Route, ...]:
    """Two ways, from either end; stages i and p - 1 - i hold the same two chunks."""

    def chunk(place: int) -> int:
        return int(place >= num_stages // 2)

    ahead = tuple((c, chunk(c)) for c in range(num_stages))
    return ahead, tuple((num_stages - 1 - c, chunk(c)) for c in range(num_stages))


def routes_of(kind: ScheduleKind, num_stages: int, chunks: int) -> tuple[Route, ...]:
    """The ways of the micro-batches through stages of so many chunks."""
    return kind.program.routes(num_stages) if kind.program else line(num_stages, chunks)


def passes_of(
    kind: ScheduleKind, num_stages: int, stage: int, microbatches: int, chunks: int
) -> Passes:
    """A stage's passes in execution order, whatever the schedule."""
    if kind.program is not None:
        return kind.program.order(num_stages, stage, microbatches)
    if kind.interleaving is not None and chunks > 1:
        order = kind.interleaving.order(num_stages, stage, microbatches, chunks)
        return tuple(Pass(Phase(int(back)), chunk, k) for back, chunk, k in order)
    plain = kind.order(num_stages, stage, microbatches)
    return tuple(Pass(Phase(int(back)), 0, k) for back, k in plain)
