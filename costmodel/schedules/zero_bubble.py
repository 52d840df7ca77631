"""ZB-H1: 1F1B whose backward is two passes, so that nobody waits for weight gradients.

The order of forwards and backwards is that of 1F1B; stage i runs the weight gradients of a
micro-batch i backwards later than it could, the last i of them after its last backward (Qi et
al., arXiv 2401.10241, section 2.2; the order is the one of Figure 3). Gradients travel down
the pipeline without waiting for weights, and what was put off fills the end: between equal stages
the ramps shrink from (p - 1)(F + B) to (p - 1)(F + B - 2 W). Every stage keeps at most p
micro-batches, what the first stage of 1F1B keeps.
"""

import numba as nb
import numpy as np

from costmodel.schedules import one_f_one_b
from costmodel.schedules.kind import FloatArray, Pass, Passes, Phase, Program, ScheduleKind
from costmodel.schedules.passes import SPLIT_SHARE, line


@nb.njit(cache=True, nogil=True)
def simulate_split(
    forward_s: FloatArray,
    input_s: FloatArray,
    weight_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> tuple[float, FloatArray]:
    """Exact makespan and end of the last pass of each stage, seconds; O(p m).

    input_s, weight_s: the two parts of a backward, shape (p,). The sweep is that of 1F1B, with the
    weight gradients of micro-batch k - i after backward k.
    """
    p, m = len(forward_s), microbatches
    free = np.zeros(p)
    backward_end = np.zeros(p)
    for k in range(m):
        arrival = 0.0
        for i in range(p):
            b = k - (p - i)
            if b >= 0:
                ready = backward_end[i + 1] + p2p_backward_s[i] if i < p - 1 else 0.0
                backward_end[i] = max(free[i], ready) + input_s[i]
                free[i] = backward_end[i] + (weight_s[i] if b >= i else 0.0)
            free[i] = max(free[i], arrival) + forward_s[i]
            arrival = free[i] + (p2p_forward_s[i] if i < p - 1 else 0.0)
    ready_at = np.zeros(m)
    makespan = 0.0
    for i in range(p - 1, -1, -1):
        first = max(0, m - (p - i))
        if i < p - 1 and m >= p - i:
            ready_at[first] = backward_end[i + 1]
        for b in range(first, m):
            ready = ready_at[b] + p2p_backward_s[i] if i < p - 1 else 0.0
            ready_at[b] = max(free[i], ready) + input_s[i]
            free[i] = ready_at[b] + (weight_s[i] if b >= i else 0.0)
        free[i] += min(m, i) * weight_s[i]
        makespan = max(makespan, free[i])
    return makespan, free


def simulate(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> tuple[float, FloatArray]:
    """``simulate_split`` with weight gradients as half of the backward."""
    weight_s = SPLIT_SHARE * backward_s
    return simulate_split(
        forward_s, backward_s - weight_s, weight_s, p2p_forward_s, p2p_backward_s, microbatches
    )


def lower_bound(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> float:
    """Seconds that no split of the backward can beat (``docs/theory/schedules.md``).

    ``max_i sum_{j<i} (F_j + c_j) + m (F_i + B_i)``: a stage has no work before the first
    micro-batch has come through the stages before it.
    """
    before = np.concatenate(([0.0], np.cumsum(forward_s[:-1] + p2p_forward_s)))
    del p2p_backward_s
    return float((before + microbatches * (forward_s + backward_s)).max())


def closed_form(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> float:
    """``m max U + sum F + sum c`` without the slowest stage's F, seconds.

    ``sum (F + B - 2 W)`` with W = B / 2; exact between equal stages without hand-overs.
    """
    slowest = int(np.argmax(forward_s + backward_s))
    ramps = forward_s.sum() - forward_s[slowest] + p2p_forward_s.sum() + p2p_backward_s.sum()
    return float(microbatches * (forward_s[slowest] + backward_s[slowest]) + ramps)


def in_flight(num_stages: int, stage: int, microbatches: int) -> int:
    """Micro-batches of which a stage still needs something: ``min(m, p)``, also the late ones."""
    del stage
    return min(microbatches, num_stages)


def order(num_stages: int, stage: int, microbatches: int) -> Passes:
    """The stage's passes in execution order."""
    passes: list[Pass] = []
    for is_backward, k in one_f_one_b.order(num_stages, stage, microbatches):
        if not is_backward:
            passes.append(Pass(Phase.FORWARD, 0, k))
            continue
        passes.append(Pass(Phase.INPUT, 0, k))
        if k >= stage:
            passes.append(Pass(Phase.WEIGHT, 0, k - stage))
    put_off = range(max(0, microbatches - stage), microbatches)
    return (*passes, *(Pass(Phase.WEIGHT, 0, k) for k in put_off))


def _takes_all(num_stages: int, microbatches: int) -> None:
    del num_stages, microbatches


SCHEDULE = ScheduleKind(
    name="zero-bubble",
    simulate=simulate,
    lower_bound=lower_bound,
    closed_form=closed_form,
    in_flight=in_flight,
    order=one_f_one_b.order,
    program=Program(
        chunks=1, routes=line, order=order, refusal=_takes_all, simulate=simulate_split
    ),
)
