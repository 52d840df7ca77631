"""Order in which a stage runs its micro-batches: one forward, one backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

Action = tuple[Literal["forward", "backward"], int]


def one_f_one_b(stages: int, stage: int, microbatches: int) -> Iterator[Action]:
    """``stages - stage - 1`` warm-up forwards, then in turns, then the remaining backwards."""
    warm_up = min(microbatches, stages - stage - 1)
    for index in range(warm_up):
        yield "forward", index
    for index in range(microbatches - warm_up):
        yield "forward", index + warm_up
        yield "backward", index
    for index in range(microbatches - warm_up, microbatches):
        yield "backward", index


def gpipe(stages: int, stage: int, microbatches: int) -> Iterator[Action]:
    """All forwards, then all backwards."""
    del stages, stage
    for index in range(microbatches):
        yield "forward", index
    for index in range(microbatches):
        yield "backward", index


SCHEDULES = {"1f1b": one_f_one_b, "gpipe": gpipe}
