"""The search's view of a stage table: arrays for compiled loops, memory folded into two terms.

For a known number of data-parallel ranks every byte of weights, gradients and optimizer state is
linear in the parameters: two coefficients an option. That number is an input: the planner passes a
guess when it sorts and the largest possible one when it proves something.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from costmodel.job import Job
from costmodel.memory import Shards, static_bytes
from costmodel.stage.table import StageTable

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Arrays(NamedTuple):
    """Prefix sums over layers (O, L + 1) and end blocks (O,); seconds and bytes of one chip.

    A stage [a, b) of option o takes ``forward[o, b] - forward[o, a]`` plus the ends that it holds;
    ``dense_bytes`` and ``expert_bytes`` are what one parameter costs there. ``dense`` and
    ``expert`` count parameters, ``first_`` is the embedding, ``last_`` the head with multi-token
    prediction, ``tied`` what both ends share. A NamedTuple because compiled functions take it.
    """

    forward: FloatArray
    backward: FloatArray
    dense: FloatArray
    expert: FloatArray
    kept: FloatArray
    first_forward: FloatArray
    first_backward: FloatArray
    first_dense: FloatArray
    first_expert: FloatArray
    first_kept: FloatArray
    last_forward: FloatArray
    last_backward: FloatArray
    last_dense: FloatArray
    last_expert: FloatArray
    last_kept: FloatArray
    tied: FloatArray
    transient: FloatArray
    transient_peak: FloatArray
    first_transient: FloatArray
    last_transient: FloatArray
    budget: FloatArray
    dense_bytes: FloatArray
    expert_bytes: FloatArray


class Grid(NamedTuple):
    """Ranks of one pipeline that share a dense or an expert parameter, and the ZeRO stage; (O,)."""

    dense: FloatArray
    expert: FloatArray
    zero: FloatArray


def grid_of(table: StageTable) -> Grid:
    """Inside a stage replicas x cp ranks share dense parameters, chips / (ep etp) share experts."""
    options = table.options
    return Grid(
        dense=np.array([float(o.replicas * o.cp) for o in options]),
        expert=np.array([o.num_chips / (o.ep * o.etp) for o in options]),
        zero=np.array([float(o.zero) for o in options]),
    )


def parameter_bytes(grid: Grid, job: Job, pipelines: int) -> tuple[FloatArray, FloatArray]:
    """Bytes of one dense and of one expert parameter when so many pipelines hold it; (O,)."""
    one, none = np.ones_like(grid.zero), np.zeros_like(grid.zero)
    shards = Shards(
        dense=pipelines * grid.dense, expert=np.maximum(1.0, np.floor(pipelines * grid.expert))
    )

    def total(dense: FloatArray, expert: FloatArray) -> FloatArray:
        parts = static_bytes(dense, expert, shards, grid.zero, job)
        return parts.weights + parts.gradients + parts.optimizer

    return total(one, none), total(none, one)


def search_arrays(table: StageTable, dense_bytes: FloatArray, expert_bytes: FloatArray) -> Arrays:
    """Arrays of every option with these bytes for one parameter."""
    first, head, mtp = table.embedding, table.head, table.mtp
    return Arrays(
        forward=table.layers.forward_s,
        backward=table.layers.backward_s,
        dense=table.layers.dense_parameters,
        expert=table.layers.expert_parameters,
        kept=table.layers.activation_bytes,
        first_forward=first.forward_s,
        first_backward=first.backward_s,
        first_dense=first.dense_parameters,
        first_expert=first.expert_parameters,
        first_kept=first.activation_bytes,
        last_forward=head.forward_s + mtp.forward_s,
        last_backward=head.backward_s + mtp.backward_s,
        last_dense=head.dense_parameters + mtp.dense_parameters,
        last_expert=head.expert_parameters + mtp.expert_parameters,
        last_kept=head.activation_bytes + mtp.activation_bytes,
        tied=table.tied_parameters,
        transient=table.transient_bytes,
        transient_peak=table.transient_bytes.max(axis=1, initial=0.0),
        first_transient=table.embedding_transient_bytes,
        last_transient=table.head_transient_bytes,
        budget=table.capacity_bytes - table.fixed_bytes,
        dense_bytes=dense_bytes,
        expert_bytes=expert_bytes,
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
    dense = x.dense[o, b] - x.dense[o, a]
    expert = x.expert[o, b] - x.expert[o, a]
    kept = x.kept[o, b] - x.kept[o, a]
    transient = 0.0
    for layer in range(a, b):
        transient = max(transient, x.transient[o, layer])
        if transient == x.transient_peak[o]:
            break
    if a == 0:
        dense += x.first_dense[o]
        expert += x.first_expert[o]
        kept += x.first_kept[o]
        transient = max(transient, x.first_transient[o])
    if b == L:
        dense += x.last_dense[o]
        expert += x.last_expert[o]
        kept += x.last_kept[o]
        transient = max(transient, x.last_transient[o])
    if a == 0 and b == L:
        dense -= x.tied[o]
    static = dense * x.dense_bytes[o] + expert * x.expert_bytes[o]
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
