"""What the stages of many layouts cost and hold: sums of table rows, for one stage of each kind."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from costmodel.batch.rows import IntArray
from costmodel.batch.shapes import Run
from costmodel.layout.values import Stage
from costmodel.stage.sums import between, ends_of
from costmodel.stage.table import FloatArray, StageTable, Terms


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class StageSums:
    """Costs of stages as in ``costmodel.frame.StageCosts``; arrays of shape (N, kinds)."""

    forward_s: FloatArray
    backward_s: FloatArray
    activation_bytes: FloatArray
    transient_bytes: FloatArray


def stage_sums(table: StageTable, rows: IntArray, stages: tuple[Stage, ...]) -> StageSums:
    """Costs of these stages under the options of these rows of the table."""

    def every(one: Callable[[Stage], FloatArray]) -> FloatArray:
        return np.stack([one(stage) for stage in stages], axis=1)

    def total(name: str) -> FloatArray:
        return every(lambda stage: _total(table, rows, stage, name))

    return StageSums(
        forward_s=total("forward_s"),
        backward_s=total("backward_s"),
        activation_bytes=total("activation_bytes"),
        transient_bytes=every(lambda stage: _transient(table, rows, stage)),
    )


def _total(table: StageTable, rows: IntArray, stage: Stage, name: str) -> FloatArray:
    prefix: FloatArray = getattr(table.layers, name)
    parts = [between(prefix, rows, start, stop) for start, stop in stage.chunks]
    ends = [getattr(end, name)[rows] for end in ends_of(table, stage)]
    return sum(parts + ends, np.zeros(len(rows)))


def run_parameters(
    table: StageTable, rows: IntArray, runs: tuple[Run, ...]
) -> tuple[FloatArray, FloatArray]:
    """Dense and expert parameters of runs on one chip before ZeRO, each (N, runs)."""
    dense = np.stack([_run_total(table, rows, run, "dense_parameters") for run in runs], axis=1)
    expert = np.stack([_run_total(table, rows, run, "expert_parameters") for run in runs], axis=1)
    for i, run in enumerate(runs):
        if run.both_ends and run.part == "head":
            dense[:, i] -= table.tied_parameters[rows]
        if run.both_ends and run.part == "mtp":
            dense[:, i] -= table.mtp_embedding_parameters[rows]
    return dense, expert


def _run_total(table: StageTable, rows: IntArray, run: Run, name: str) -> FloatArray:
    terms: Terms = getattr(table, run.part)
    values: FloatArray = getattr(terms, name)
    if run.part == "layers":
        return between(values, rows, run.start, run.stop)
    return values[rows]


def _transient(table: StageTable, rows: IntArray, stage: Stage) -> FloatArray:
    peaks = [np.zeros(len(rows))]
    peaks += [table.transient_bytes[rows, a:b].max(axis=1) for a, b in stage.chunks if b > a]
    if stage.embedding:
        peaks.append(table.embedding_transient_bytes[rows])
    if stage.head:
        peaks.append(table.head_transient_bytes[rows])
    return np.max(peaks, axis=0)
