"""What a pipeline schedule has to offer."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Simulate = Callable[[FloatArray, FloatArray, FloatArray, FloatArray, int], tuple[float, FloatArray]]
SplitSimulate = Callable[
    [FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, int], tuple[float, FloatArray]
]
Formula = Callable[[FloatArray, FloatArray, FloatArray, FloatArray, int], float]
Order = tuple[tuple[bool, int, int], ...]
Route = tuple[tuple[int, int], ...]
"""(stage, k-th chunk of the stage) of every place that a micro-batch visits, first to last."""


class Phase(IntEnum):
    """What a pass computes.

    BACKWARD: all gradients. INPUT: those that the stage before waits for. WEIGHT: the others.
    """

    FORWARD = 0
    BACKWARD = 1
    INPUT = 2
    WEIGHT = 3


class Pass(NamedTuple):
    """One pass of a stage; ``beside``: it starts and ends with the pass before it."""

    phase: Phase
    chunk: int
    microbatch: int
    beside: bool = False


Passes = tuple[Pass, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interleaving:
    """The functions of a schedule whose stages hold v > 1 chunks of layers each.

    Stage i of p holds the chunks i, i + p, i + 2 p... of the p v chunks in layer order. Times are
    per chunk: forward_s[p v], backward_s[p v], and p2p_forward_s[p v - 1], p2p_backward_s[p v - 1]
    from chunk c to c + 1 and back; then come the micro-batches and v.

    simulate: exact event simulation; the makespan and the end of each stage's last backward.
    lower_bound: proven never to exceed the simulated makespan.
    order: (num_stages, stage, microbatches, v) -> the stage's passes in execution order,
        ``(is_backward, k-th chunk of the stage, micro-batch)``.
    """

    simulate: Callable[
        [FloatArray, FloatArray, FloatArray, FloatArray, int, int], tuple[float, FloatArray]
    ]
    lower_bound: Callable[[FloatArray, FloatArray, FloatArray, FloatArray, int, int], float]
    order: Callable[[int, int, int, int], Order]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A schedule whose stages run the passes of a list, weight gradients apart.

    chunks: how many each stage holds.
    routes: num_stages -> the ways of micro-batches; each takes an equal part of them, in order.
    order: (num_stages, stage, microbatches) -> the stage's passes in execution order.
    refusal: (num_stages, microbatches) -> what is wrong with these, None if nothing is.
    simulate: a quick simulation of one chunk per stage, None if there is none: makespan and ends of
        the stages from forward, input gradients, weight gradients (p,), hand-overs (p - 1,) ahead
        and back, and the number of micro-batches.
    """

    chunks: int
    routes: Callable[[int], tuple[Route, ...]]
    order: Callable[[int, int, int], Passes]
    refusal: Callable[[int, int], "Refusal | None"]
    simulate: SplitSimulate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a schedule does not take so many stages (``stages``) or micro-batches."""

    field: str
    rule: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleKind:
    """A schedule: the order in which every stage runs its forwards and backwards.

    All functions take forward_s[p], backward_s[p] (seconds of one micro-batch on each stage),
    p2p_forward_s[p - 1], p2p_backward_s[p - 1] (seconds to hand an activation from stage i to
    i + 1 and a gradient back) and the number of micro-batches.

    simulate: exact event simulation; the makespan and the end of each stage's last backward.
    lower_bound: proven never to exceed the simulated makespan (``docs/theory``).
    closed_form: quick estimate for sorting; no bound on either side.
    in_flight: (num_stages, stage, microbatches) -> micro-batches whose activations a stage keeps.
    order: (num_stages, stage, microbatches) -> the stage's passes, ``(is_backward, microbatch)``.
    interleaving: the functions for more than one chunk per stage; None if the schedule has none.
    program: the list of passes of a schedule that runs weight gradients apart, else None. The
        other functions then take weight gradients as half of the backward, and are no measure of
        a layout.
    """

    name: str
    simulate: Simulate
    lower_bound: Formula
    closed_form: Formula
    in_flight: Callable[[int, int, int], int]
    order: Callable[[int, int, int], tuple[tuple[bool, int], ...]]
    interleaving: Interleaving | None = None
    program: Program | None = None
