"""Even splits of layers over stages."""

from collections.abc import Iterable, Iterator

from costmodel.schedules.kind import Route

Chunks = tuple[tuple[int, int], ...]


def balanced(num_layers: int, num_stages: int) -> tuple[int, ...]:
    """Layers of each stage, as even as possible; the last stages take what is left over.

    12 over 5 is 2, 2, 2, 3, 3: late stages keep fewer micro-batches alive, so they have room.
    """
    least, more = divmod(num_layers, num_stages)
    return tuple(least + (i >= num_stages - more) for i in range(num_stages))


def with_ends(
    num_layers: int, num_stages: int, first: int | None, last: int | None
) -> tuple[int, ...]:
    """Layers of each stage where the first or last is given and the others are balanced."""
    head = () if first is None else (first,)
    tail = () if last is None else (last,)
    inner = num_stages - len(head) - len(tail)
    rest = num_layers - sum(head) - sum(tail)
    return (*head, *(balanced(rest, inner) if inner > 0 else ()), *tail)


def ranges(counts: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Half-open layer ranges of consecutive stages with so many layers."""
    start = 0
    for count in counts:
        yield start, start + count
        start += count


def dealt(counts: tuple[int, ...], ways: tuple[Route, ...]) -> tuple[Chunks, ...]:
    """Chunks of each stage when every way visits runs of so many layers."""
    held: dict[int, dict[int, tuple[int, int]]] = {}
    for way in ways:
        for (stage, nth), layers in zip(way, ranges(counts), strict=True):
            held.setdefault(stage, {})[nth] = layers
    return tuple(tuple(of[nth] for nth in sorted(of)) for _, of in sorted(held.items()))


def described(counts: Iterable[int]) -> str:
    """``10 x 3, 6 x 2``: how many stages hold how many layers, in order of stages."""
    runs: list[list[int]] = []
    for count in counts:
        if runs and runs[-1][1] == count:
            runs[-1][0] += 1
        else:
            runs.append([1, count])
    return ", ".join(f"{times} x {count}" for times, count in runs)
