"""The steps of DualPipe and DualPipeV: two chunks on every stage, fed from either side.

Both run the same eight steps (deepseek-ai/DualPipe, ``dualpipe.py`` and ``dualpipev.py``; figure
5 of the DeepSeek-V3 report, arXiv 2412.19437). ``side`` 0 is the chunk whose micro-batches arrive
first. In the main part a forward of one side runs beside a backward of the other, each computing
while the other exchanges tokens; towards the end weight gradients are put off.
"""

from collections import deque
from collections.abc import Iterator

from costmodel.schedules.kind import Pass, Passes, Phase

Step = tuple[Phase, int, bool]
"""Phase, side, and whether it runs beside the step before it."""


def steps(depth: int, position: int, count: int) -> Iterator[Step]:
    """The steps of the stage ``position`` of ``depth``, each side with ``count`` micro-batches.

    Needs ``count >= 2 depth``. Weight gradients are of the earliest backward put off.
    """
    inner = depth - 1 - position
    for _ in range(2 * inner):
        yield Phase.FORWARD, 0, False
    for _ in range(position + 1):
        yield Phase.FORWARD, 0, False
        yield Phase.FORWARD, 1, False
    for _ in range(inner):
        yield Phase.INPUT, 1, False
        yield Phase.WEIGHT, 1, False
        yield Phase.FORWARD, 1, False
    for k in range(count - 2 * depth + position + 1):
        yield from _together(0, 1, beside=k > 0 or inner > 0)
        yield from _together(1, 0, beside=True)
    for _ in range(inner):
        yield Phase.BACKWARD, 1, False
        yield from _together(1, 0, beside=True)
    yield from _drain(position, inner)


def _together(ahead: int, back: int, *, beside: bool) -> Iterator[Step]:
    yield Phase.FORWARD, ahead, False
    yield Phase.BACKWARD, back, beside


def _drain(position: int, inner: int) -> Iterator[Step]:
    """Backwards alone, the second half of them without weights; then these."""
    for k in range(2 * (position + 1)):
        yield Phase.BACKWARD if k <= position else Phase.INPUT, 1 - k % 2, False
    for _ in range(inner):
        yield Phase.WEIGHT, 0, False
        yield Phase.INPUT, 0, False
    for _ in range(position + 1):
        yield Phase.WEIGHT, 0, False


def numbered(found: Iterator[Step], first: tuple[int, int]) -> Passes:
    """The steps as passes of the chunks called like their sides.

    first: the first micro-batch of each side.
    """
    ahead, back = list(first), list(first)
    put_off: deque[tuple[int, int]] = deque()
    passes: list[Pass] = []
    for phase, side, beside in found:
        if phase is Phase.WEIGHT:
            passes.append(Pass(phase, *put_off.popleft()))
            continue
        counts = ahead if phase is Phase.FORWARD else back
        passes.append(Pass(phase, side, counts[side], beside))
        if phase is Phase.INPUT:
            put_off.append((side, counts[side]))
        counts[side] += 1
    return tuple(passes)
