"""Interleaved 1F1B: every stage holds v chunks of layers (Narayanan et al. 2021, arXiv 2104.04473).

Forwards come in groups of p micro-batches: p of them through the stage's first chunk, the same p
through its second, and so on; backwards walk the chunks the other way. Stage i runs
``min(m v, 2 (p - 1 - i) + (v - 1) p)`` chunk forwards before its first backward, then one forward
and one backward in turn, as in Megatron-LM's ``schedules.py``. The ramps shrink to 1/v of those of
1F1B, the traffic between stages grows by v. With one chunk per stage it is 1F1B itself.
"""

from functools import lru_cache

import numba as nb
import numpy as np

from costmodel.errors import InputError
from costmodel.schedules import one_f_one_b
from costmodel.schedules.chunk_order import pass_at, warm_passes
from costmodel.schedules.kind import FloatArray, Interleaving, Order, ScheduleKind
from costmodel.schedules.steady import (
    LANES,
    IntArray,
    interleaved_ends,
    interleaved_visits,
    rounds_run,
)


def simulate(
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
    virtual_stages: int,
) -> tuple[float, FloatArray]:
    """Exact makespan and end of each stage's last backward, seconds.

    Micro-batches are run until they repeat each other (``costmodel.schedules.steady``), at most
    O(p v m). Arguments as in ``Interleaving``. Raises InputError unless p divides the
    micro-batches.
    """
    num_stages = len(forward_s) // virtual_stages
    check(num_stages, microbatches)
    visits = _first_visits(num_stages, virtual_stages, microbatches // num_stages)
    times = forward_s, backward_s, p2p_forward_s, p2p_backward_s
    ends = _ends(times, microbatches, virtual_stages, visits)
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


@lru_cache(maxsize=16)
def _first_visits(p: int, v: int, rounds: int) -> IntArray:
    return interleaved_visits(p, v, rounds_run(rounds, 0) * p)


@nb.njit(cache=True, nogil=True)
def _ends(
    times: tuple[FloatArray, FloatArray, FloatArray, FloatArray], m: int, v: int, visits: IntArray
) -> FloatArray:  # pragma: no cover - compiled
    """Ends of the stages. times: forward, backward, hand-overs ahead and back."""
    chunks = len(times[0])
    p = chunks // v
    took, hops = np.empty((2, chunks, LANES)), np.zeros((2, chunks, LANES))
    for way in range(2):
        for c in range(chunks):
            took[way, c] = times[way][c]
            if c < chunks - 1:
                hops[way, c] = times[2 + way][c]
    ended, rounds = np.empty((len(visits) + 1, LANES)), np.full(LANES, m // p)
    return interleaved_ends(took, hops, rounds, visits, ended, p)[:, 0].copy()


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
