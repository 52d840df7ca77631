"""GPipe: all forwards, then all backwards (Huang et al. 2019, arXiv 1811.06965).

Micro-batches are alike, so both halves are flow shops with identical jobs and the makespan has an
exact closed form; the last stage turns around without waiting.
"""

import numba as nb
import numpy as np

from costmodel.schedules.kind import FloatArray, ScheduleKind


@nb.njit(cache=True, nogil=True)
def simulate(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> tuple[float, FloatArray]:
    """Exact makespan and end of the last backward of each stage, seconds; O(p).

    Micro-batches are alike, so that the k-th leaves stage i ``k max_{j <= i} F_j`` after the first.
    """
    p, rest = len(forward_s), microbatches - 1
    ends = np.empty(p)
    turned = forward_s.sum() + p2p_forward_s.sum() + rest * forward_s.max()
    slowest = 0.0
    for i in range(p - 1, -1, -1):
        turned += backward_s[i] + (p2p_backward_s[i] if i < p - 1 else 0.0)
        slowest = max(slowest, backward_s[i])
        ends[i] = turned + rest * slowest
    return ends[0], ends


def closed_form(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> float:
    """Exact makespan ``sum (F + B) + sum c + (m - 1) (max F + max B)``, seconds."""
    passes = forward_s.sum() + backward_s.sum() + p2p_forward_s.sum() + p2p_backward_s.sum()
    return float(passes + (microbatches - 1) * (forward_s.max() + backward_s.max()))


def in_flight(num_stages: int, stage: int, microbatches: int) -> int:
    """Micro-batches whose activations a stage keeps at its peak: all of them."""
    del num_stages, stage
    return microbatches


def order(num_stages: int, stage: int, microbatches: int) -> tuple[tuple[bool, int], ...]:
    """The stage's passes in execution order as (is_backward, micro-batch)."""
    del num_stages, stage
    return tuple((half == 1, k) for half in range(2) for k in range(microbatches))


SCHEDULE = ScheduleKind(
    name="gpipe",
    simulate=simulate,
    lower_bound=closed_form,
    closed_form=closed_form,
    in_flight=in_flight,
    order=order,
)
