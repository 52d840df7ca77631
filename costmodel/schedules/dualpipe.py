"""DualPipe: micro-batches enter the pipeline from both ends (DeepSeek-V3, arXiv 2412.19437, 3.2.1).

Stages i and p - 1 - i hold the same two chunks of layers, so that every chunk is there twice and
its gradients are summed over both; half of the micro-batches go one way, half the other. Between
equal stages the ramps are (p / 2 - 1)(F&B + B - 3 W), F&B a forward beside a backward, and a stage
keeps at most p + 1 micro-batches of a chunk (deepseek-ai/DualPipe, README).
"""

import numpy as np

from costmodel.schedules import one_f_one_b
from costmodel.schedules.kind import FloatArray, Passes, Program, Refusal, ScheduleKind
from costmodel.schedules.passes import both_ways
from costmodel.schedules.spread import busiest, spread
from costmodel.schedules.two_ended import numbered, steps


def order(num_stages: int, stage: int, microbatches: int) -> Passes:
    """The stage's passes; micro-batches from m / 2 on come from the last stage."""
    half, share = num_stages // 2, microbatches // 2
    first = (share, 0) if stage >= half else (0, share)
    return numbered(steps(half, min(stage, num_stages - 1 - stage), share), first)


def refusal(num_stages: int, microbatches: int) -> Refusal | None:
    """An even number of stages, an even number of at least two micro-batches a stage."""
    if num_stages % 2:
        rule = "must be even: stages i and p - 1 - i hold the same layers"
        near = f"{num_stages - 1} or {num_stages + 1}" if num_stages > 1 else "2"
        return Refusal(field="stages", rule=rule, fix=f"use {near} stages")
    if microbatches % 2 or microbatches < 2 * num_stages:
        least = max(2 * num_stages, microbatches + microbatches % 2)
        rule = f"must be even and at least {2 * num_stages}, twice the stages"
        return Refusal(field="microbatches", rule=rule, fix=f"use {least} micro-batches")
    return None


def closed_form(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> float:
    """``m max U + (p / 2 - 1)(F&B + B - 3 W)`` of the slowest stage, W = B / 2, seconds.

    Exact between equal stages with F = B - W = W and neither hand-overs nor exchanges.
    """
    slowest = int(np.argmax(forward_s + backward_s))
    forward, backward = float(forward_s[slowest]), float(backward_s[slowest])
    ramps = max(len(forward_s) / 2.0 - 1.0, 0.0) * (forward + backward / 2.0)
    del p2p_forward_s, p2p_backward_s
    return microbatches * (forward + backward) + ramps


def in_flight(num_stages: int, stage: int, microbatches: int) -> int:
    """Micro-batch chunks of which a stage still needs something: ``p + 1``."""
    del stage
    return min(microbatches, num_stages + 1)


PROGRAM = Program(chunks=2, routes=both_ways, order=order, refusal=refusal)

SCHEDULE = ScheduleKind(
    name="dualpipe",
    simulate=spread(lambda: SCHEDULE, PROGRAM),
    lower_bound=busiest,
    closed_form=closed_form,
    in_flight=in_flight,
    order=one_f_one_b.order,
    program=PROGRAM,
)
