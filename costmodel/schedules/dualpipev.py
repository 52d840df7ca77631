"""DualPipeV: DualPipe cut in half, its chunks laid there and back (deepseek-ai/DualPipe).

Stage i of p holds the chunks i and 2 p - 1 - i of the model's 2 p, so that every layer is there
once and both ends of the model are on the first stage. The steps are those of DualPipe with 2 p
stages; ramps, of equal chunks, (p - 1)(F&B + B - 3 W).
"""

import numpy as np

from costmodel.schedules import one_f_one_b
from costmodel.schedules.kind import FloatArray, Passes, Program, Refusal, ScheduleKind
from costmodel.schedules.passes import vee
from costmodel.schedules.spread import busiest, spread
from costmodel.schedules.two_ended import numbered, steps


def order(num_stages: int, stage: int, microbatches: int) -> Passes:
    """The stage's passes in execution order."""
    return numbered(steps(num_stages, stage, microbatches), (0, 0))


def refusal(num_stages: int, microbatches: int) -> Refusal | None:
    """At least two micro-batches a stage."""
    least = 2 * num_stages
    if microbatches >= least:
        return None
    rule, fix = f"must be at least {least}, twice the stages", f"use {least} micro-batches"
    return Refusal(field="microbatches", rule=rule, fix=fix)


def closed_form(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> float:
    """``m max U + (p - 1)(F&B + B - 3 W) / 2`` of the slowest stage, W = B / 2, seconds.

    Exact between equal chunks with F = B - W = W and neither hand-overs nor exchanges.
    """
    slowest = int(np.argmax(forward_s + backward_s))
    forward, backward = float(forward_s[slowest]), float(backward_s[slowest])
    ramps = (len(forward_s) - 1) * (forward + backward / 2.0) / 2.0
    del p2p_forward_s, p2p_backward_s
    return microbatches * (forward + backward) + ramps


def in_flight(num_stages: int, stage: int, microbatches: int) -> int:
    """Micro-batch chunks of which a stage still needs something: ``2 p + 1``."""
    del stage
    return min(2 * microbatches, 2 * num_stages + 1)


PROGRAM = Program(chunks=2, routes=vee, order=order, refusal=refusal)

SCHEDULE = ScheduleKind(
    name="dualpipev",
    simulate=spread(lambda: SCHEDULE, PROGRAM),
    lower_bound=busiest,
    closed_form=closed_form,
    in_flight=in_flight,
    order=one_f_one_b.order,
    program=PROGRAM,
)
