"""How long the things take that people wait for. Run by `make bench`."""

from typing import Any

import pytest

from costmodel.hardware.read import load_cluster
from costmodel.job import Job
from costmodel.layout.read import load_layout
from costmodel.model.read import load_model
from costmodel.problem import Problem
from costmodel.step import evaluate
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


def test_estimate(benchmark: Any) -> None:
    problem = Problem(model=load_model("llama3-70b"), cluster=load_cluster("hybrid-64"), job=JOB)
    layout = load_layout(problem, "tp=8,pp=4,dp=2")

    assert benchmark(evaluate, problem, layout).step_time_s > 0


def test_read_model(benchmark: Any) -> None:
    assert benchmark(load_model, "deepseek-v3").num_layers == 61


def test_read_cluster(benchmark: Any) -> None:
    assert benchmark(load_cluster, "mixed-10240").num_chips == 10240
