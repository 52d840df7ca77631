"""Scores layouts with the same stages: equal pp and vp, whatever their options."""

from dataclasses import dataclass, replace

import numpy as np

from costmodel.after_backward import (
    Sync,
    exposed_sync_s,
    optimizer_s,
    pieces_s,
    reached_sync,
)
from costmodel.batch.ends import Pipelines, step_seconds
from costmodel.batch.kept import kept_bytes
from costmodel.batch.network import copies_seconds, ring_sync
from costmodel.batch.rows import IntArray, UniformRows, distinct, grouped
from costmodel.batch.shapes import Shape
from costmodel.batch.stages import StageSums, run_parameters, stage_sums
from costmodel.batch.values import SCHEDULES
from costmodel.hardware.values import Pool
from costmodel.memory import Shards, static_bytes
from costmodel.network.sharding import sharding_seconds
from costmodel.problem import Problem
from costmodel.stage.table import FloatArray, StageTable


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Part:
    """What the scores of some layouts are read from.

    table_rows: the row of each layout in the table, (N,). hops: seconds by row of the table.
    """

    problem: Problem
    pool: Pool
    table: StageTable
    table_rows: IntArray
    hops: FloatArray


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Held:
    """Parameters of a stage of each kind on one chip, (N, kinds), and who shares them, (N, 1).

    dense_ranks, expert_ranks: ranks with the same parameters. runs: dense and expert parameters
    of each run, (N, runs).
    """

    dense: FloatArray
    expert: FloatArray
    runs: tuple[FloatArray, FloatArray]
    dense_ranks: IntArray
    expert_ranks: IntArray

    @property
    def shards(self) -> Shards:
        """Over how many ranks ZeRO shards them."""
        ranks = self.dense_ranks, self.expert_ranks
        dense, expert = (one.astype(np.float64) for one in ranks)
        return Shards(dense=dense, expert=expert)


def scored(
    part: Part, rows: UniformRows, shape: Shape, *, only_fitting: bool
) -> tuple[FloatArray, FloatArray]:
    """Step seconds and peak bytes of each layout, (N,)."""
    rows = _as_run(rows)
    held = _held(part, rows, shape)
    sums = stage_sums(part.table, part.table_rows, shape.stages)
    chunks = sums
    if len(shape.chunk_kinds) > len(shape.stage_kinds):
        chunks = stage_sums(part.table, part.table_rows, shape.chunks)
    microbatches = part.problem.job.global_batch_size // (rows.mbs * rows.dp)
    peak = _peak_bytes(part, rows, shape, (held, sums, chunks, microbatches))
    timed = peak <= part.pool.usable_bytes if only_fitting else np.ones(len(rows), np.bool_)
    pipelines = _pipelines(part, rows, shape, (held, sums, chunks, microbatches))
    step_s = np.full(len(rows), np.nan)
    for number, kind in enumerate(SCHEDULES):
        own = np.flatnonzero(timed & (rows.schedule == number))
        step_s[own] = step_seconds(kind, pipelines, own)
    return step_s + part.problem.efficiency.step_overhead_s, peak


def _as_run(rows: UniformRows) -> UniformRows:
    """Interleaved stages of one chunk run as 1F1B does."""
    alone = (rows.vp == 1) & (rows.schedule == SCHEDULES.index("interleaved"))
    return replace(rows, schedule=np.where(alone, SCHEDULES.index("1f1b"), rows.schedule))


def _held(part: Part, rows: UniformRows, shape: Shape) -> _Held:
    runs = run_parameters(part.table, part.table_rows, shape.runs)
    chips = rows.dp * rows.tp * rows.cp
    return _Held(
        dense=runs[0] @ shape.held,
        expert=runs[1] @ shape.held,
        runs=runs,
        dense_ranks=(rows.dp * rows.cp)[:, None],
        expert_ranks=(chips // (rows.ep * rows.etp))[:, None],
    )


_Known = tuple[_Held, StageSums, StageSums, IntArray]
"""Parameters, costs of the stages and of the chunks, micro-batches."""


def _peak_bytes(part: Part, rows: UniformRows, shape: Shape, known: _Known) -> FloatArray:
    """Bytes of the chip that holds most."""
    held, sums, chunks, microbatches = known
    zero = rows.zero[:, None].astype(np.float64)
    static = static_bytes(held.dense, held.expert, held.shards, zero, part.problem.job)
    trained = part.problem.efficiency.trained_share
    bytes_of_kind = static.weights + trained * (static.gradients + static.optimizer)
    bytes_of_kind = bytes_of_kind + sums.transient_bytes
    peak = np.empty(len(rows))
    for kind, m, own in _by_schedule(rows, microbatches):
        kept = kept_bytes(kind, shape, m, chunks.activation_bytes[own])
        peak[own] = (kept + bytes_of_kind[own][:, shape.stage_kinds]).max(axis=1)
    return peak + part.table.fixed_bytes[part.table_rows]


def _by_schedule(rows: UniformRows, microbatches: IntArray) -> list[tuple[str, int, IntArray]]:
    """Schedule, micro-batches and the rows that have both."""
    first, index = distinct((rows.schedule, microbatches))
    return [
        (SCHEDULES[int(rows.schedule[i])], int(microbatches[i]), own)
        for i, own in zip(first, grouped(index), strict=True)
    ]


def _pipelines(part: Part, rows: UniformRows, shape: Shape, known: _Known) -> Pipelines:
    held, sums, chunks, microbatches = known
    efficiency, vp = part.problem.efficiency, int(rows.vp[0])
    zero = rows.zero[:, None]
    sync = reached_sync(_sync(part, rows, shape, held), zero, efficiency)
    passes = sums.forward_s, sums.backward_s
    extra = sharding_seconds(zero, passes, (sync.reduce_s, sync.gather_s), efficiency)
    layers = np.array([float(stage.num_layers) for stage in shape.stages])
    rate = np.asarray(part.pool.chip.streaming_bytes_per_s())
    after_s = exposed_sync_s(sync, zero, *passes, efficiency)
    after_s = after_s + optimizer_s((held.dense, held.expert), held.shards, zero, rate, efficiency)
    after_s = after_s + pieces_s(layers, held.shards.dense, zero, efficiency)
    return Pipelines(
        chunk_kinds=shape.chunk_kinds,
        stage_kinds=shape.stage_kinds,
        forward_s=chunks.forward_s + efficiency.microbatch_overhead_s / vp,
        backward_s=chunks.backward_s,
        extra_forward_s=extra[0] / vp,
        extra_backward_s=extra[1] / vp,
        hop_s=part.hops[part.table_rows],
        microbatches=microbatches,
        after_s=after_s,
    )


def _sync(part: Part, rows: UniformRows, shape: Shape, held: _Held) -> Sync:
    """Gradient sums and parameter gathers of a stage of each kind, one run after the other."""
    job, zero = part.problem.job, rows.zero[:, None]
    strides = rows.tp, rows.ep * rows.etp
    ranks = held.dense_ranks[:, 0], held.expert_ranks[:, 0]
    layers = np.array([max(1, run.stop - run.start) for run in shape.runs])
    own = [
        ring_sync(part.pool, (n, stride), parameters, zero, layers, job)
        for n, stride, parameters in zip(ranks, strides, held.runs, strict=True)
        if parameters.any()
    ]
    reduce_s = sum((sync.reduce_s for sync in own), np.zeros_like(held.runs[0])) @ shape.held
    gather_s = sum((sync.gather_s for sync in own), np.zeros_like(held.runs[0])) @ shape.held
    if rows.pp[0] > 1:
        for kind in (shape.stage_kinds[0], shape.stage_kinds[-1]):
            reduce_s[:, kind] += _copies_s(part, rows)
    return Sync(reduce_s=reduce_s, gather_s=gather_s)


def _copies_s(part: Part, rows: UniformRows) -> FloatArray:
    """Seconds in which the first and the last stage sum gradients of weights that both hold."""
    job, chosen = part.problem.job, part.table_rows
    stride = rows.tp * rows.cp * rows.replicas
    seconds = np.zeros(len(rows))
    for held in (part.table.tied_parameters, part.table.mtp_embedding_parameters):
        if held.any():
            seconds = seconds + copies_seconds(part.pool, stride, held[chosen], job)
    return seconds
