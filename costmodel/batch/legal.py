"""Which rows are legal layouts of one pool: the rules of ``costmodel.layout.rules``, by column."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from costmodel.batch.rows import IntArray, UniformRows, distinct
from costmodel.batch.values import SCHEDULES
from costmodel.hardware.values import Pool
from costmodel.layout.packing import domains_needed, domains_of
from costmodel.layout.rules_degrees import DEGREE_RULES, expert_grid_fits
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.problem import Problem

Mask = NDArray[np.bool_]


def legal_rows(problem: Problem, pool: str, rows: UniformRows) -> Mask:
    """True where the layout breaks no rule, shape (N,).

    The rules on degrees are asked once for each distinct set of degrees; the others are
    divisibilities of columns.
    """
    home = problem.cluster.pool(pool)
    batch = problem.job.global_batch_size
    microbatches, rest = np.divmod(batch, rows.mbs * rows.dp)
    stages = rows.pp * rows.vp
    return (
        (rest == 0)
        & (microbatches > 0)
        & (rows.num_chips <= home.num_chips)
        & ((rows.tp * rows.cp * rows.dp) % (rows.ep * rows.etp) == 0)
        & (stages <= _most_stages(problem))
        & ((rows.vp == 1) | (rows.schedule == SCHEDULES.index("interleaved")))
        & ((rows.vp == 1) | (microbatches % rows.pp == 0))
        & _packed(home, rows)
        & _legal_degrees(problem, pool, rows)
    )


def _most_stages(problem: Problem) -> int:
    """Virtual stages: balanced splits leave the first ones empty, and one of them may be."""
    return problem.model.num_layers + 1


def _packed(pool: Pool, rows: UniformRows) -> Mask:
    """Whether the tp groups fit into the scale-up domains of the pool."""

    def fits(tp: int, groups: int) -> bool:
        return domains_needed({tp: groups}, pool.scale_up_domain) <= domains_of(pool)

    return _each((rows.tp, rows.num_chips // rows.tp), fits)


def _legal_degrees(problem: Problem, pool: str, rows: UniformRows) -> Mask:
    columns = (rows.tp, rows.cp, rows.ep, rows.etp, rows.sp)

    def obeyed(tp: int, cp: int, ep: int, etp: int, sp: int) -> bool:
        option = StageOption(
            pool=pool, tp=tp, cp=cp, ep=ep, etp=etp, replicas=ep * etp, sequence_parallel=bool(sp)
        )
        layout = _one_stage(problem, option)
        rules = (rule for rule in DEGREE_RULES if rule is not expert_grid_fits)
        return not any(True for rule in rules for _ in rule(problem, layout))

    return _each(columns, obeyed)


def _one_stage(problem: Problem, option: StageOption) -> Layout:
    model = problem.model
    chunks = ((0, model.num_layers),)
    stage = Stage(option=option, chunks=chunks, embedding=True, head=True, mtp=len(model.mtp))
    return Layout(pipelines=(Pipeline(stages=(stage,), microbatches=1),))


def _each(columns: tuple[IntArray, ...], holds: Callable[..., bool]) -> Mask:
    """Asks once for each distinct row of these columns."""
    first, index = distinct(columns)
    keys = np.stack([column[first] for column in columns], axis=1)
    answers = np.array([holds(*map(int, key)) for key in keys], dtype=np.bool_)
    return answers[index]
