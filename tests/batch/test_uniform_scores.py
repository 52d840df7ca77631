"""The batch path says of every uniform layout what the evaluator says of it alone."""

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costmodel.batch.rows import UniformGrid, rows_of
from costmodel.batch.score import score_rows, score_uniform
from costmodel.batch.values import SCHEDULES
from costmodel.errors import InputError
from costmodel.hardware.read import load_cluster
from costmodel.job import RECOMPUTE_MODES, Job
from costmodel.layout.read import load_layout
from costmodel.layout.rules import violations
from costmodel.layout.uniform import Uniform, uniform_layout
from costmodel.layout.values import Layout
from costmodel.model.read import load_model
from costmodel.problem import Problem
from costmodel.step import evaluate

CASES = {
    "llama3-70b": ("hybrid-64", "ib", 96, 4096),
    "gpt2": ("hybrid-64", "roce", 64, 1024),
    "mixtral-8x22b": ("mixed-10240", "a800", 256, 4096),
    "deepseek-v3": ("mixed-10240", "h100-a", 480, 4096),
    "llama3.1-405b": ("gb200-nvl72-576", "gb200", 512, 8192),
}
"""Dense, tied ends, experts, unlike layers with multi-token prediction, one large domain."""


@cache
def problem_of(model: str) -> tuple[Problem, str]:
    cluster, pool, batch, length = CASES[model]
    job = Job(global_batch_size=batch, sequence_length=length)
    problem = Problem(model=load_model(model), cluster=load_cluster(cluster), job=job)
    names = [pool.name for pool in problem.cluster.pools]
    return problem, pool if pool in names else names[0]


def legal_layout(problem: Problem, uniform: Uniform) -> Layout | None:
    try:
        parsed = uniform_layout(problem, uniform)
    except InputError:
        return None
    return None if parsed.broken or violations(problem, parsed.layout) else parsed.layout


def small(*values: int) -> st.SearchStrategy[int]:
    return st.sampled_from(values)


UNIFORMS = st.builds(
    Uniform,
    tp=small(1, 2, 4, 8, 16),
    pp=small(1, 2, 3, 4, 5, 8, 16),
    vp=small(1, 1, 2, 3, 5),
    cp=small(1, 1, 2, 4),
    ep=small(1, 1, 2, 8, 16),
    etp=small(1, 1, 1, 2),
    dp=small(1, 2, 3, 4, 8, 16, 32),
    mbs=small(1, 2, 4),
    zero=small(0, 1, 2, 3),
    recompute=st.sampled_from(RECOMPUTE_MODES),
    sp=st.booleans(),
    schedule=st.sampled_from((*SCHEDULES, None)),
)


@pytest.mark.parametrize("model", CASES)
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(uniforms=st.lists(UNIFORMS, min_size=1, max_size=30))
def test_rows_are_scored_as_evaluated(model: str, uniforms: list[Uniform]) -> None:
    problem, pool = problem_of(model)
    rows = rows_of(uniforms)
    scores = score_rows(problem, pool, rows)
    for k in range(len(rows)):
        layout = legal_layout(problem, rows.uniform(k, pool))
        assert scores.legal[k] == (layout is not None)
        if layout is None:
            assert not scores.fits[k]
            continue
        alone = evaluate(problem, layout)
        peak = max(stage.memory.peak for stage in alone.stages[0])
        assert scores.step_s[k] == pytest.approx(alone.step_time_s, rel=1e-9)
        assert scores.peak_bytes[k] == pytest.approx(peak, rel=1e-9)
        assert scores.mfu[k] == pytest.approx(alone.mfu, rel=1e-9)
        assert scores.fits[k] == alone.fits


GRID = UniformGrid(
    tp=(1, 2, 4, 8),
    pp=(1, 2, 4),
    vp=(1, 2),
    dp=(1, 2, 4),
    mbs=(1, 2),
    zero=(1, 3),
    recompute=RECOMPUTE_MODES,
    schedule=SCHEDULES,
)


def test_best_is_the_quickest_that_fits() -> None:
    problem, pool = problem_of("gpt2")
    scores = score_rows(problem, pool, GRID.rows())
    best = scores.best(5)
    fitting = scores.step_s[scores.fits]
    assert scores.step_s[best].tolist() == sorted(fitting.tolist())[:5]
    assert scores.best(10**9).size == scores.fits.sum()


def test_only_fitting_times_what_fits() -> None:
    problem, pool = problem_of("llama3-70b")
    rows = GRID.rows()
    every, fitting = (score_rows(problem, pool, rows, only_fitting=only) for only in (False, True))
    assert 0 < every.fits.sum() < every.legal.sum()
    assert np.array_equal(np.isfinite(every.step_s), every.legal)
    assert np.array_equal(np.isfinite(fitting.step_s), fitting.fits)
    assert np.array_equal(every.step_s[every.fits], fitting.step_s[every.fits])


def test_many_micro_batches_are_skipped_and_not_forgotten() -> None:
    """Steady pipelines with hand-overs, uneven ends and thousands of micro-batches."""
    model, cluster = load_model("llama3-70b"), load_cluster("hybrid-64")
    job = Job(global_batch_size=3000, sequence_length=4096)
    rows = UniformGrid(tp=(2, 8), pp=(2, 3, 4), vp=(1, 2, 7), schedule=SCHEDULES).rows()
    scores = score_uniform(model, cluster, job, rows)
    problem = Problem(model=model, cluster=cluster, job=job)
    assert scores.legal.any()
    for k in np.flatnonzero(scores.legal):
        text = rows.uniform(int(k), cluster.pools[0].name)
        layout = legal_layout(problem, text)
        assert layout is not None
        assert scores.step_s[k] == pytest.approx(evaluate(problem, layout).step_time_s, rel=1e-9)


def test_no_rows_no_scores() -> None:
    problem, pool = problem_of("gpt2")
    scores = score_rows(problem, pool, rows_of([]))
    assert scores.best().size == scores.step_s.size == 0


def test_a_row_is_the_inline_form() -> None:
    problem, pool = problem_of("gpt2")
    rows = rows_of([Uniform(tp=2, pp=4, dp=2, recompute="full", pools=pool)])
    inline = f"tp=2,pp=4,dp=2,recompute=full,pools={pool}"
    assert legal_layout(problem, rows.uniform(0, pool)) == load_layout(problem, inline)
