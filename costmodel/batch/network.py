"""Gradient sums of many uniform layouts: every weight's replicas are one ring in one pool."""

import numpy as np

from costmodel.after_backward import Sync
from costmodel.batch.rows import IntArray, distinct
from costmodel.hardware.values import Pool
from costmodel.job import Job
from costmodel.model.placement import Collective
from costmodel.network import collectives
from costmodel.network.groups import group_link
from costmodel.network.synchronisation import parcels
from costmodel.stage.table import FloatArray

HALVES = (Collective.REDUCE_SCATTER, Collective.ALL_GATHER)


def ring_seconds(
    pool: Pool, ranks: IntArray, stride: IntArray, payload_bytes: FloatArray, half: Collective
) -> FloatArray:
    """Seconds of one half of an all-reduce.

    ranks, stride: of each layout, (N,). payload_bytes: per chip and kind of stage, (N, kinds).
    """
    first, index = distinct((ranks, stride))
    links = [group_link(pool, int(ranks[i]), int(stride[i]), half) for i in first]
    rate = np.array([link.bytes_per_s for link in links])[index]
    latency = np.array([link.latency_s for link in links])[index]
    numbers = (ranks.astype(np.float64), rate, latency)
    return collectives.seconds(half, payload_bytes, *(x[:, None] for x in numbers))


def ring_sync(
    pool: Pool,
    group: tuple[IntArray, IntArray],
    parameters: FloatArray,
    zero: IntArray,
    layers: IntArray,
    job: Job,
) -> Sync:
    """As ``costmodel.network.synchronisation.segment_sync`` has it, for stages of one pool.

    group: ranks and stride, (N,) each. parameters: on one chip before ZeRO, (N, kinds); zero:
    (N, 1); layers: of each kind, at least 1, (kinds,).
    """
    gathered, parts = parcels(zero, layers, job)

    def half_s(size: FloatArray | int, half: Collective) -> FloatArray:
        one = ring_seconds(pool, *group, size * parameters / parts, half)
        return np.where(parameters > 0, parts * one, 0.0)

    down, up = half_s(job.gradient_bytes, HALVES[0]), half_s(gathered, HALVES[1])
    return Sync(reduce_s=np.where(zero > 0, down, down + up), gather_s=np.where(zero > 0, up, 0.0))


def copies_seconds(pool: Pool, stride: IntArray, parameters: FloatArray, job: Job) -> FloatArray:
    """Seconds that the two copies of one weight in a pipeline need to sum its gradient, (N,)."""
    payload, pairs = job.gradient_bytes * parameters[:, None], np.full_like(stride, 2)
    both = sum(ring_seconds(pool, pairs, stride, payload, half)[:, 0] for half in HALVES)
    return np.where(parameters > 0, both, 0.0)
