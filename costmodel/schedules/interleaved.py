"""Interleaved 1F1B: every stage holds v chunks of layers (Narayanan et al. 2021, arXiv 2104.04473).

Forwards come in groups of p micro-batches: p of them through the stage's first chunk, the same p
through its second, and so on; backwards walk the chunks the other way. Stage i runs
``min(m v, 2 (p - 1 - i) + (v - 1) p)`` chunk forwards before its first backward, then one forward
and one backward in turn, as in Megatron-LM's ``schedules.py``. The ramps shrink to 1/v of those of
1F1B, the traffic between stages grows by v. With one chunk per stage it is 1F1B itself.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from costmodel.errors import InputError
from costmodel.schedules import one_f_one_b
from costmodel.schedules.kind import FloatArray, Interleaving, Order, ScheduleKind


def simulate(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
    virtual_stages: int,
) -> tuple[float, FloatArray]:
    """Exact makespan and end of each stage's last backward, seconds; O(p v m).

    Arguments as in ``Interleaving``. Raises InputError unless p divides the micro-batches.
    """
    check(len(forward_s) // virtual_stages, microbatches)
    ends = _simulate(
        forward_s, backward_s, p2p_forward_s, p2p_backward_s, microbatches, virtual_stages
    )
    return float(ends.max()), ends


def check(num_stages: int, microbatches: int) -> None:
    """Raises InputError unless the micro-batches come in whole groups of one per stage."""
    if microbatches % num_stages:
        below = microbatches // num_stages * num_stages
        nearest = f"{below} or {below + num_stages}" if below else f"{num_stages}"
        raise InputError.of(
            field="/pipelines/microbatches",
            value=microbatches,
            rule=f"must be a multiple of the {num_stages} stages when they are interleaved",
            fix=f"use {nearest} micro-batches or the schedule 1f1b",
        )


@nb.njit(cache=True, nogil=True)
def pass_at(
    step: int, warm: int, passes: int, p: int, v: int
) -> tuple[bool, int, int]:  # pragma: no cover - compiled
    """The ``step``-th pass of a stage: (is_backward, its k-th chunk, micro-batch)."""
    if step < warm:
        backward, k = False, step
    elif step < 2 * passes - warm:
        backward = (step - warm) % 2 == 1
        k = (step - warm) // 2 + (0 if backward else warm)
    else:
        backward, k = True, step - passes
    chunk = k % (p * v) // p
    return backward, (v - 1 - chunk if backward else chunk), k // (p * v) * p + k % p


@nb.njit(cache=True, nogil=True)
def warm_passes(p: int, i: int, m: int, v: int) -> int:  # pragma: no cover - compiled
    return min(m * v, 2 * (p - 1 - i) + (v - 1) * p)


@nb.njit(cache=True, nogil=True)
def _simulate(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    m: int,
    v: int,
) -> FloatArray:  # pragma: no cover - compiled
    """Sweeps over the stages; each runs as far as its inputs have arrived. Ends of the stages."""
    chunks = len(forward_s)
    p = chunks // v
    ended = np.full((2, chunks, m), -1.0)
    clock = np.zeros(p)
    done = np.zeros(p, np.int64)
    left = 2 * chunks * m
    while left > 0:
        for i in range(p):
            warm = warm_passes(p, i, m, v)
            while done[i] < 2 * m * v:
                backward, nth, k = pass_at(done[i], warm, m * v, p, v)
                c = nth * p + i
                ready = _ready(ended, c, backward, k, p2p_forward_s, p2p_backward_s)
                if ready < 0.0:
                    break
                duration = backward_s[c] if backward else forward_s[c]
                clock[i] = max(clock[i], ready) + duration
                ended[1 if backward else 0, c, k] = clock[i]
                done[i] += 1
                left -= 1
    return clock


@nb.njit(cache=True, nogil=True)
def _ready(
    ended: NDArray[np.float64],
    c: int,
    backward: bool,
    k: int,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
) -> float:  # pragma: no cover - compiled
    """When the input of a pass arrives; negative as long as it is not known."""
    last = ended.shape[1] - 1
    if backward:
        if c == last:
            return float(ended[0, c, k])
        before = ended[1, c + 1, k]
        return float(before if before < 0.0 else before + p2p_backward_s[c])
    if c == 0:
        return 0.0
    before = ended[0, c - 1, k]
    return float(before if before < 0.0 else before + p2p_forward_s[c - 1])


def lower_bound(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
    virtual_stages: int,
) -> float:
    """Seconds that no order of these passes can beat: ``max_i H_i + m U_i``, and one round trip.

    H_i: forward, backward and hand-overs of the chunks before stage i's first one. Nothing can run
    on the stage before micro-batch 0 has come through them, and after its last backward of that
    chunk the gradient still has to go back through them. U_i: work of all its chunks.
    """
    p = len(forward_s) // virtual_stages
    work = forward_s + backward_s
    hops = np.append(p2p_forward_s + p2p_backward_s, 0.0)
    before = np.concatenate(([0.0], np.cumsum((work + hops)[: p - 1])))
    own = work.reshape(virtual_stages, p).sum(axis=0)
    return float(max((before + microbatches * own).max(), (work + hops).sum()))


def order(num_stages: int, stage: int, microbatches: int, virtual_stages: int) -> Order:
    """The stage's passes in execution order as (is_backward, k-th chunk, micro-batch)."""
    check(num_stages, microbatches)
    warm = warm_passes(num_stages, stage, microbatches, virtual_stages)
    passes = microbatches * virtual_stages
    return tuple(
        pass_at(step, warm, passes, num_stages, virtual_stages) for step in range(2 * passes)
    )


SCHEDULE = ScheduleKind(
    name="interleaved",
    simulate=one_f_one_b.simulate,
    lower_bound=one_f_one_b.lower_bound,
    closed_form=one_f_one_b.closed_form,
    in_flight=one_f_one_b.in_flight,
    order=one_f_one_b.order,
    interleaving=Interleaving(simulate=simulate, lower_bound=lower_bound, order=order),
)
