"""The search's view of a stage table: arrays for compiled loops, memory folded into two terms.

For a known number of data-parallel ranks every byte of weights, gradients and optimizer state is
linear in the parameters, so static memory is a prefix sum like time. The shard degree is an input:
the planner passes a guess when it sorts and the largest possible one when it proves something.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from costmodel.job import Job
from costmodel.memory import Shards, static_bytes
from costmodel.stage_table import StageTable, Terms

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Arrays(NamedTuple):
    """Prefix sums over layers (O, L + 1) and end blocks (O,); seconds and bytes of one chip.

    A stage [a, b) of option o takes ``forward[o, b] - forward[o, a]`` plus the ends that it holds.
    A NamedTuple because compiled functions take it as it is.
    """

    forward: FloatArray
    backward: FloatArray
    static: FloatArray
    kept: FloatArray
    first_forward: FloatArray
    first_backward: FloatArray
    first_static: FloatArray
    first_kept: FloatArray
    last_forward: FloatArray
    last_backward: FloatArray
    last_static: FloatArray
    last_kept: FloatArray
    transient: FloatArray
    first_transient: FloatArray
    last_transient: FloatArray
    budget: FloatArray
    chips: IntArray
    tied_static: FloatArray


def _static(
    held: tuple[FloatArray, FloatArray], table: StageTable, job: Job, pipelines: int
) -> FloatArray:
    """Weights, gradients and optimizer state of (dense, expert) parameters on one chip, bytes.

    ``pipelines``: how many hold the weights; with a stage's own r replicas and c context ranks
    dense parameters shard over pipelines r c ranks, experts over pipelines chips / (ep etp).
    """
    options = table.options
    ranks = np.array([float(pipelines * o.replicas * o.cp) for o in options])
    expert_ranks = [max(1, pipelines * o.num_chips // (o.ep * o.etp)) for o in options]
    shape = (-1, 1) if held[0].ndim == 2 else (-1,)
    shards = Shards(
        dense=ranks.reshape(shape), expert=np.array(expert_ranks, np.float64).reshape(shape)
    )
    zero = np.array([float(o.zero) for o in options]).reshape(shape)
    parts = static_bytes(*held, shards, zero, job)
    return parts.weights + parts.gradients + parts.optimizer


def _held(*blocks: Terms) -> tuple[FloatArray, FloatArray]:
    dense = np.sum([b.dense_parameters for b in blocks], axis=0)
    return dense, np.sum([b.expert_parameters for b in blocks], axis=0)


def search_arrays(table: StageTable, job: Job, pipelines: int) -> Arrays:
    """Arrays of every option when so many pipelines hold each layer."""
    tied = table.tied_parameters
    return Arrays(
        forward=table.layers.forward_s,
        backward=table.layers.backward_s,
        static=_static(_held(table.layers), table, job, pipelines),
        kept=table.layers.activation_bytes,
        first_forward=table.embedding.forward_s,
        first_backward=table.embedding.backward_s,
        first_static=_static(_held(table.embedding), table, job, pipelines),
        first_kept=table.embedding.activation_bytes,
        last_forward=table.head.forward_s + table.mtp.forward_s,
        last_backward=table.head.backward_s + table.mtp.backward_s,
        last_static=_static(_held(table.head, table.mtp), table, job, pipelines),
        last_kept=table.head.activation_bytes + table.mtp.activation_bytes,
        transient=table.transient_bytes,
        first_transient=table.embedding_transient_bytes,
        last_transient=table.head_transient_bytes,
        budget=table.capacity_bytes - table.fixed_bytes,
        chips=table.num_chips,
        tied_static=_static((tied, np.zeros_like(tied)), table, job, pipelines),
    )


@nb.njit(cache=True, nogil=True)
def stage_seconds(x: Arrays, o: int, a: int, b: int, L: int) -> tuple[float, float]:
    """Forward and backward of one micro-batch on layers [a, b), with the ends they touch."""
    forward = x.forward[o, b] - x.forward[o, a]
    backward = x.backward[o, b] - x.backward[o, a]
    if a == 0:
        forward += x.first_forward[o]
        backward += x.first_backward[o]
    if b == L:
        forward += x.last_forward[o]
        backward += x.last_backward[o]
    return forward, backward


@nb.njit(cache=True, nogil=True)
def stage_bytes(x: Arrays, o: int, a: int, b: int, L: int, in_flight: int) -> float:
    """Peak memory of layers [a, b) without the fixed part."""
    static = x.static[o, b] - x.static[o, a]
    kept = x.kept[o, b] - x.kept[o, a]
    transient = 0.0
    for layer in range(a, b):
        transient = max(transient, x.transient[o, layer])
    if a == 0:
        static += x.first_static[o]
        kept += x.first_kept[o]
        transient = max(transient, x.first_transient[o])
    if b == L:
        static += x.last_static[o]
        kept += x.last_kept[o]
        transient = max(transient, x.last_transient[o])
    if a == 0 and b == L:
        static -= x.tied_static[o]
    return static + in_flight * kept + transient


@nb.njit(cache=True, nogil=True)
def template_seconds(
    x: Arrays, rows: IntArray, cuts: IntArray, L: int
) -> tuple[FloatArray, FloatArray]:
    """Forward and backward of every stage of a pipeline; stage i holds [cuts[i], cuts[i + 1])."""
    p = len(rows)
    forward = np.empty(p)
    backward = np.empty(p)
    for i in range(p):
        forward[i], backward[i] = stage_seconds(x, rows[i], cuts[i], cuts[i + 1], L)
    return forward, backward
