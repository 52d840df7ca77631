"""Order in which a stage runs its micro-batches; the runner's own reading of the schedules.

A stage holds one chunk of layers, or with interleaving several. A pass is a forward or a backward
of one chunk for one micro-batch. Arguments: stages of the pipeline, this stage, micro-batches,
chunks per stage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

WHOLE, INPUT, WEIGHT = "whole", "input", "weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One forward or backward: ``chunk`` counts the stage's own chunks.

    part: of a backward, ``whole``, or only what other stages wait for (``input``) or the rest
    (``weight``).
    """

    backward: bool
    microbatch: int
    chunk: int = 0
    part: str = WHOLE


def one_f_one_b(stages: int, stage: int, microbatches: int, chunks: int) -> Iterator[Pass]:
    """``stages - stage - 1`` warm-up forwards, then in turns, then the remaining backwards."""
    del chunks
    warm_up = min(microbatches, stages - stage - 1)
    for index in range(warm_up):
        yield Pass(backward=False, microbatch=index)
    for index in range(microbatches - warm_up):
        yield Pass(backward=False, microbatch=index + warm_up)
        yield Pass(backward=True, microbatch=index)
    for index in range(microbatches - warm_up, microbatches):
        yield Pass(backward=True, microbatch=index)


def gpipe(stages: int, stage: int, microbatches: int, chunks: int) -> Iterator[Pass]:
    """All forwards, then all backwards."""
    del stages, stage, chunks
    for backward in (False, True):
        for index in range(microbatches):
            yield Pass(backward=backward, microbatch=index)


def interleaved(stages: int, stage: int, microbatches: int, chunks: int) -> Iterator[Pass]:
    """Groups of one micro-batch per stage go through the chunks in turn (arXiv 2104.04473).

    Warm-up: ``2 (stages - 1 - stage) + (chunks - 1) stages`` forwards; backwards take the chunks
    in the opposite order. The micro-batches are a multiple of the stages. With one chunk it is
    1F1B.
    """
    if chunks == 1:
        yield from one_f_one_b(stages, stage, microbatches, chunks)
        return
    rounds = range(0, microbatches, stages)
    order = [
        (chunk, first + offset)
        for first in rounds
        for chunk in range(chunks)
        for offset in range(stages)
    ]
    forwards = [Pass(backward=False, microbatch=m, chunk=c) for c, m in order]
    backwards = [Pass(backward=True, microbatch=m, chunk=chunks - 1 - c) for c, m in order]
    warm_up = min(len(order), 2 * (stages - 1 - stage) + (chunks - 1) * stages)
    yield from forwards[:warm_up]
    for ahead, back in zip(forwards[warm_up:], backwards, strict=False):
        yield ahead
        yield back
    yield from backwards[len(order) - warm_up :]


def zero_bubble(stages: int, stage: int, microbatches: int, chunks: int) -> Iterator[Pass]:
    """1F1B whose stage i runs weight gradients i backwards late (ZB-H1, arXiv 2401.10241)."""
    put_off: deque[int] = deque()
    for now in one_f_one_b(stages, stage, microbatches, chunks):
        if not now.backward:
            yield now
            continue
        yield replace(now, part=INPUT)
        put_off.append(now.microbatch)
        if len(put_off) > stage:
            yield Pass(backward=True, microbatch=put_off.popleft(), part=WEIGHT)
    for index in put_off:
        yield Pass(backward=True, microbatch=index, part=WEIGHT)


SCHEDULES: dict[str, Callable[[int, int, int, int], Iterator[Pass]]] = {
    "1f1b": one_f_one_b,
    "gpipe": gpipe,
    "interleaved": interleaved,
    "zero-bubble": zero_bubble,
}
SPLIT = frozenset({"zero-bubble"})
"""Schedules that run weight gradients as passes of their own."""
