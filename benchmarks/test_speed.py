"""How long the things take that people wait for. Run by `make bench`."""

from dataclasses import replace
from typing import Any

import pytest

from costmodel import UniformGrid, estimate, score_uniform
from costmodel.hardware.read import load_cluster
from costmodel.job import RECOMPUTE_MODES, Job
from costmodel.model.read import load_model
from planner import plan

JOB = Job(global_batch_size=1024, sequence_length=4096)
CASES = [
    ("llama3-70b", "hybrid-64"),
    ("qwen3-235b-a22b", "h100-a800-h20-1024"),
    ("llama3.1-405b", "mixed-10240"),
]


@pytest.mark.parametrize(("model", "cluster"), CASES)
def test_plan(benchmark: Any, model: str, cluster: str) -> None:
    problem = load_model(model), load_cluster(cluster), JOB
    found = benchmark.pedantic(
        plan, problem, {"time_limit_s": 60.0}, rounds=3, iterations=1, warmup_rounds=1
    )

    assert found.status in ("optimal", "feasible")


ESTIMATES = [
    ("llama3-70b", "hybrid-64", "tp=8,pp=4,dp=2,recompute=full"),
    ("llama3-70b", "hybrid-64", "tp=8,pp=4,vp=2,dp=2,recompute=full"),
    ("llama3.1-405b", "mixed-10240", "tp=8,pp=16,dp=8,recompute=full,pools=h100-a"),
    ("llama3.1-405b", "mixed-10240", "tp=8,pp=8,cp=2,dp=8,zero=3,recompute=full,pools=h100-a"),
    ("deepseek-v3", "mixed-10240", "pp=16,ep=64,dp=64,recompute=full,pools=h100-a"),
]


@pytest.mark.parametrize(("model", "cluster", "layout"), ESTIMATES)
def test_estimate(benchmark: Any, model: str, cluster: str, layout: str) -> None:
    """Warm: from the second call on. A millisecond is the aim."""
    job = replace(JOB, sequence_length=8192) if model == "llama3.1-405b" else JOB
    known = load_model(model), load_cluster(cluster), job
    estimate(*known, layout)

    assert benchmark(estimate, *known, layout).evaluation.step_time_s > 0


DENSE = UniformGrid(
    tp=(1, 2, 4, 8),
    pp=(1, 2, 3, 4, 6, 7, 8, 9, 12, 14, 16),
    vp=(1, 2, 3),
    cp=(1, 2, 4),
    dp=(1, 2, 4, 8, 16, 32, 64),
    mbs=(1, 2, 4),
    zero=(0, 1, 2, 3),
    recompute=RECOMPUTE_MODES,
    sp=(False, True),
)
SPARSE = replace(DENSE, cp=(1, 2), ep=(1, 4, 16, 64), etp=(1, 2), sp=(True,), zero=(0, 1))
GRIDS = [
    ("llama3-70b", "mixed-10240", DENSE),
    ("llama3.1-405b", "mixed-10240", DENSE),
    ("deepseek-v3", "mixed-10240", SPARSE),
]


@pytest.mark.parametrize(("model", "cluster", "grid"), GRIDS)
def test_score_uniform(benchmark: Any, model: str, cluster: str, grid: UniformGrid) -> None:
    """Tables and all, on one core: 200,000 legal layouts a second are the aim."""
    known, rows = (load_model(model), load_cluster(cluster), JOB), grid.rows()
    scores = benchmark.pedantic(score_uniform, (*known, rows), rounds=5, warmup_rounds=1)
    legal = int(scores.legal.sum())
    rate = legal / benchmark.stats.stats.median
    benchmark.extra_info.update(rows=len(rows), legal=legal, legal_per_s=round(rate))

    assert legal > 10_000


def test_read_model(benchmark: Any) -> None:
    assert benchmark(load_model, "deepseek-v3").num_layers == 61


def test_read_cluster(benchmark: Any) -> None:
    assert benchmark(load_cluster, "mixed-10240").num_chips == 10240
