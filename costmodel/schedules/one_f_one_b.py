"""Strict 1F1B: warm-up forwards, then one forward and one backward in turn, then the drain.

Stage i of p runs ``min(m, p - 1 - i)`` warm-up forwards, so that it keeps at most ``p - i``
micro-batches (PipeDream-Flush, Narayanan et al. 2021, arXiv 2104.04473). Hand-overs between
stages take time but do not occupy either stage; a pass starts as soon as its stage is free and
its input has arrived.
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
    """Exact makespan and end of the last backward of each stage, seconds.

    Micro-batches are visited in order: before forward k, stage i runs backward k - (p - i), whose
    gradient stage i + 1 has already produced, so one sweep over (k, i) meets every event once.
    O(p m). Arguments as in ``ScheduleKind``.
    """
    p, m = len(forward_s), microbatches
    free = np.zeros(p)
    backward_end = np.zeros(p)
    for k in range(m):
        arrival = 0.0
        for i in range(p):
            if k >= p - i:
                ready = backward_end[i + 1] + p2p_backward_s[i] if i < p - 1 else 0.0
                free[i] = max(free[i], ready) + backward_s[i]
                backward_end[i] = free[i]
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
            free[i] = max(free[i], ready) + backward_s[i]
            ready_at[b] = free[i]
        makespan = max(makespan, free[i])
    return makespan, free


@nb.njit(cache=True, nogil=True)
def lower_bound(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> float:
    """Proven lower bound on the makespan of strict 1F1B, seconds (``docs/theory/bound.md``).

    With U = F + B, H_i = sum_{j<i} (U_j + c_j), R_i = sum_{j>i} U_j + sum_{j>=i} c_j (c_j both
    directions), w_i = p - i, w = min(m, w_i)::

        T >= max_i H_i + m U_i + idle_i,   idle_i = g1 + g2 if m > w_i else max(g1, g2)
             g1 = (R_i - (w - 1) F_i)^+,   g2 = (R_i - (w - 1) B_i)^+
        T >= max_i H_i + (q + 1) (U_i + R_i) + r X_i,   m - 1 = q w_i + r, X_i = U_i if q else F_i
    """
    p, m = len(forward_s), microbatches
    total = forward_s.sum() + backward_s.sum() + p2p_forward_s.sum() + p2p_backward_s.sum()
    before = 0.0
    best = 0.0
    for i in range(p):
        work = forward_s[i] + backward_s[i]
        round_trip = max(0.0, total - before - work)
        width = p - i
        warm = min(m, width) - 1
        gap_up = max(0.0, round_trip - warm * forward_s[i])
        gap_down = max(0.0, round_trip - warm * backward_s[i])
        idle = gap_up + gap_down if m > width else max(gap_up, gap_down)
        cycles = (m - 1) // width
        rest = (m - 1) - cycles * width
        cycle = (cycles + 1) * (work + round_trip) + rest * (work if cycles > 0 else forward_s[i])
        best = max(best, before + max(m * work + idle, cycle))
        if i < p - 1:
            before += work + p2p_forward_s[i] + p2p_backward_s[i]
    return best


def closed_form(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> float:
    """Classic estimate ``sum U + sum c + (m - 1) max U``, seconds.

    Exact for equal stages without p2p time, where it is (m + p - 1) U; for unequal stages it is
    off by up to 20 % either way, so it sorts and never decides.
    """
    work = forward_s + backward_s
    transfers = p2p_forward_s.sum() + p2p_backward_s.sum()
    return float(work.sum() + transfers + (microbatches - 1) * work.max())


def in_flight(num_stages: int, stage: int, microbatches: int) -> int:
    """Micro-batches whose activations stage ``stage`` (from 0) keeps at its peak: min(m, p - i)."""
    return min(microbatches, num_stages - stage)


def order(num_stages: int, stage: int, microbatches: int) -> tuple[tuple[bool, int], ...]:
    """The stage's passes in execution order as (is_backward, micro-batch)."""
    warm = min(microbatches, num_stages - 1 - stage)
    passes = [(False, k) for k in range(warm)]
    for k in range(warm, microbatches):
        passes += [(False, k), (True, k - warm)]
    passes += [(True, k) for k in range(microbatches - warm, microbatches)]
    return tuple(passes)


SCHEDULE = ScheduleKind(
    name="1f1b",
    simulate=simulate,
    lower_bound=lower_bound,
    closed_form=closed_form,
    in_flight=in_flight,
    order=order,
)
