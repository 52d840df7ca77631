"""Scores many uniform layouts of one pool as arrays: time, memory, whether it fits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costmodel.batch.legal import legal_rows
from costmodel.batch.rows import COLUMNS, IntArray, UniformRows, distinct, grouped
from costmodel.batch.shape_scores import Part, scored
from costmodel.batch.shapes import shape_of
from costmodel.batch.values import check_count, check_job, check_numbers
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.model.flops import flops_per_token
from costmodel.model.graph import ModelGraph
from costmodel.network.transfers import transfer_seconds
from costmodel.problem import Problem
from costmodel.stage.costs import stage_table
from costmodel.stage.table import FloatArray, StageTable

AT_ONCE = 4096
"""Layouts of one shape whose arrays are alive together: they stay in the cache."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class UniformScores:
    """What ``evaluate`` says of each row; arrays of shape (N,).

    legal: whether it breaks no rule; the other values of a row that does are NaN, and its ``fits``
    is false. step_s: optimizer step to optimizer step, NaN too where only what fits was timed.
    peak_bytes: of the chip that holds most. capacity_bytes: what a chip may hold. mfu: model FLOPs
    over the dense peak of the chips used.
    """

    legal: NDArray[np.bool_]
    fits: NDArray[np.bool_]
    step_s: FloatArray
    peak_bytes: FloatArray
    capacity_bytes: float
    mfu: FloatArray

    def best(self, count: int = 1) -> IntArray:
        """Rows of the quickest layouts that fit, quickest first, at most ``count``.

        Raises InputError for a count that is not a whole number of at least 0.
        """
        check_count(count)
        seconds = np.where(self.fits, self.step_s, np.inf)
        found = np.argsort(seconds, kind="stable")[:count]
        return found[np.isfinite(seconds[found])]


def score_uniform(
    model: ModelGraph,
    cluster: Cluster,
    job: Job,
    rows: UniformRows,
    *,
    pool: str | None = None,
    only_fitting: bool = False,
) -> UniformScores:
    """Scores uniform layouts on one pool: what ``estimate`` says of each, all at once.

    rows: from ``UniformGrid.rows`` or ``rows_of``. pool: whose chips they take; by default the
    first one. only_fitting: leaves out the time of layouts that do not fit, most of the work.

    Layers are split as the inline form does without ``first``, ``last`` or ``layout``. What a row
    says goes before the job's choice of the same, as with ``estimate``. Raises InputError for
    numbers that no row can have and for a job whose schedule no row has,
    UnknownNameError for a pool that the cluster lacks, UnknownNumberError for a number that nobody
    published.
    """
    problem = Problem(model=model, cluster=cluster, job=job)
    return score_rows(problem, pool or cluster.pools[0].name, rows, only_fitting=only_fitting)


def score_rows(
    problem: Problem, pool: str, rows: UniformRows, *, only_fitting: bool = False
) -> UniformScores:
    """``score_uniform`` of a problem."""
    check_job(problem.job)
    check_numbers({name: getattr(rows, name) for name in COLUMNS})
    legal, n = legal_rows(problem, pool, rows), len(rows)
    step_s, peak, home = np.full(n, np.nan), np.full(n, np.nan), problem.cluster.pool(pool)
    chosen = np.flatnonzero(legal)
    own = rows.take(chosen)
    table, row = _table(problem, pool, own)
    hops = _hop_seconds(problem, table)
    for places in _by_shape(own):
        part = Part(problem=problem, pool=home, table=table, table_rows=row[places], hops=hops)
        shape = shape_of(problem.model, int(own.pp[places[0]]), int(own.vp[places[0]]))
        step_s[chosen[places]], peak[chosen[places]] = scored(
            part, own.take(places), shape, only_fitting=only_fitting
        )
    return UniformScores(
        legal=legal,
        fits=peak <= home.usable_bytes,
        step_s=step_s,
        peak_bytes=peak,
        capacity_bytes=home.usable_bytes,
        mfu=_mfu(problem, rows, step_s, home.chip.peak(problem.job.precision)),
    )


def _table(problem: Problem, pool: str, rows: UniformRows) -> tuple[StageTable, IntArray]:
    """Costs of every distinct way in which stages run, and each layout's row in them."""
    columns = (rows.tp, rows.cp, rows.ep, rows.etp, rows.mbs, rows.recompute, rows.sp, rows.zero)
    first, index = distinct(columns)
    options = tuple(rows.option(int(row), pool) for row in first)
    parts = problem.model, problem.cluster, problem.job
    return stage_table(*parts, options, problem.efficiency), index


def _hop_seconds(problem: Problem, table: StageTable) -> FloatArray:
    """Seconds of a hand-over between two stages under each option of the table."""
    return np.array(
        [
            transfer_seconds(problem.cluster, o, o, float(size), float(size), problem.efficiency)
            for o, size in zip(table.options, table.boundary_bytes, strict=True)
        ]
    )


def _by_shape(rows: UniformRows) -> list[IntArray]:
    """Rows with the same pp and vp, at most ``AT_ONCE`` together."""
    groups = grouped(distinct((rows.pp, rows.vp))[1])
    return [group[i : i + AT_ONCE] for group in groups for i in range(0, len(group), AT_ONCE)]


def _mfu(
    problem: Problem, rows: UniformRows, step_s: FloatArray, peak_flop_per_s: float
) -> FloatArray:
    job = problem.job
    tokens = job.global_batch_size * job.sequence_length
    model_flop = tokens * flops_per_token(problem.model, job.sequence_length)
    return model_flop / step_s / (rows.num_chips * peak_flop_per_s)
