"""ZB-V: two chunks a stage, laid there and back, weight gradients apart (Qi et al.,
arXiv 2401.10241, section 6; the order for equal passes, as in torch's ``ScheduleZBVZeroBubble``).

Stage i of p holds the chunks i and 2 p - 1 - i, so the last layers are beside the first and a
backward can start where its forward did. Between equal chunks with F = B - W = W nothing but the
way in is idle: ``6 m + p - 1`` chunk passes. A stage keeps at most 2 p micro-batch chunks, what
the first stage of 1F1B keeps.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from costmodel.schedules import one_f_one_b
from costmodel.schedules.kind import FloatArray, Pass, Passes, Phase, Program, ScheduleKind
from costmodel.schedules.passes import vee
from costmodel.schedules.spread import busiest, spread

Step = tuple[Phase, int]


def order(num_stages: int, stage: int, microbatches: int) -> Passes:
    """The stage's passes: those of ``2 p - 1`` or more micro-batches without what is too much."""
    counts = dict.fromkeys([(phase, chunk) for phase in Phase for chunk in (0, 1)], 0)
    passes: list[Pass] = []
    for phase, chunk in _steps(num_stages, stage, max(microbatches, 2 * num_stages - 1)):
        k = counts[phase, chunk]
        counts[phase, chunk] += 1
        if k < microbatches:
            passes.append(Pass(phase, chunk, k))
    return tuple(passes)


def _steps(p: int, i: int, m: int) -> Iterator[Step]:
    first = 2 * (p - i) - 1
    yield from [(Phase.FORWARD, 0)] * first
    yield from [(Phase.FORWARD, 1), (Phase.FORWARD, 0)] * i
    second = [(Phase.FORWARD, 1), (Phase.INPUT, 1), (Phase.WEIGHT, 1)]
    yield from second * (p - i)
    begun = first + i
    for k in range(m - p):
        if begun + k < m:
            yield Phase.FORWARD, 0
        yield from [(Phase.INPUT, 0), (Phase.WEIGHT, 0), *second]
    yield from [(Phase.INPUT, 0), (Phase.INPUT, 1)] * i
    yield from [(Phase.INPUT, 0), (Phase.WEIGHT, 0)] * (p - i)
    yield from [(Phase.WEIGHT, 1)] * i
    yield from [(Phase.WEIGHT, 0)] * i


def _takes_all(num_stages: int, microbatches: int) -> None:
    del num_stages, microbatches


def closed_form(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> float:
    """``m max U + (p - 1) F / 2`` of the slowest stage, without hand-overs, seconds.

    Exact between equal chunks with F = B - W = W.
    """
    slowest = int(np.argmax(forward_s + backward_s))
    forward, backward = float(forward_s[slowest]), float(backward_s[slowest])
    ramps = (len(forward_s) - 1) * forward / 2.0
    del p2p_forward_s, p2p_backward_s
    return microbatches * (forward + backward) + ramps


@lru_cache(maxsize=4096)
def in_flight(num_stages: int, stage: int, microbatches: int) -> int:
    """Micro-batch chunks of which a stage still needs something; 2 p from as many on."""
    held = most = 0
    for one in order(num_stages, stage, min(microbatches, 2 * num_stages)):
        held += {Phase.FORWARD: 1, Phase.INPUT: 0}.get(one.phase, -1)
        most = max(most, held)
    return most


PROGRAM = Program(chunks=2, routes=vee, order=order, refusal=_takes_all)

SCHEDULE = ScheduleKind(
    name="zbv",
    simulate=spread(lambda: SCHEDULE, PROGRAM),
    lower_bound=busiest,
    closed_form=closed_form,
    in_flight=in_flight,
    order=one_f_one_b.order,
    program=PROGRAM,
)
