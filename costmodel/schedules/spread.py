"""Listed schedules by the times of whole stages: chunks alike, weight gradients half a backward."""

from collections.abc import Callable

import numpy as np

from costmodel.schedules.kind import FloatArray, Program, ScheduleKind, Simulate
from costmodel.schedules.passes import SPLIT_SHARE
from costmodel.schedules.replay import Seconds, lists_of, replay


def spread(kind: Callable[[], ScheduleKind], program: Program) -> Simulate:
    """``simulate`` of a listed schedule by the times of whole stages, its chunks being alike.

    kind: gives the schedule, which is made after this.
    """

    def simulate(
        forward_s: FloatArray,
        backward_s: FloatArray,
        p2p_forward_s: FloatArray,
        p2p_backward_s: FloatArray,
        microbatches: int,
    ) -> tuple[float, FloatArray]:
        passes, hops = (forward_s, backward_s), (p2p_forward_s, p2p_backward_s)
        return simulate_spread(kind(), program, passes, hops, microbatches)

    return simulate


def simulate_spread(
    kind: ScheduleKind,
    program: Program,
    passes: tuple[FloatArray, FloatArray],
    hops: tuple[FloatArray, FloatArray],
    microbatches: int,
) -> tuple[float, FloatArray]:
    """Makespan and end of each stage; what a micro-batch takes there is shared by its visits.

    passes: forward and backward seconds of a stage, (p,); hops: hand-overs between neighbours.
    """
    p = len(passes[0])
    routes = program.routes(p)
    stages = [stage for route in routes for stage, _ in route]
    visits = np.bincount(stages, minlength=p) / len(routes)
    up, down = (np.array([_hop(part, a, b) for a, b in _pairs(routes)]) for part in hops)
    forward, backward = ((part / visits)[stages] for part in passes)
    seconds = Seconds(
        forward_s=forward,
        backward_s=backward,
        weight_s=SPLIT_SHARE * backward,
        up_s=up,
        down_s=down,
        forward_ep_s=np.zeros_like(forward),
        backward_ep_s=np.zeros_like(forward),
    )
    ends = replay(lists_of(kind, p, microbatches, program.chunks), seconds).ends
    return float(ends.max()), ends


def _pairs(routes: tuple[tuple[tuple[int, int], ...], ...]) -> list[tuple[int, int]]:
    """(stage, stage after it) of every place; the last of a way is its own."""
    return [
        (stage, route[min(k + 1, len(route) - 1)][0])
        for route in routes
        for k, (stage, _) in enumerate(route)
    ]


def _hop(seconds: FloatArray, a: int, b: int) -> float:
    return 0.0 if a == b else float(seconds[min(a, b)])


def busiest(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> float:
    """``m max U``: no order of passes is quicker than the work of its busiest stage, seconds."""
    del p2p_forward_s, p2p_backward_s
    return float(microbatches * (forward_s + backward_s).max())
