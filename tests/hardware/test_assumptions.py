"""A prediction names the assumed numbers that it reads and no others."""

from __future__ import annotations

import pytest

from costmodel.assumptions import assumptions_of
from costmodel.errors import UnknownNumberError
from costmodel.estimation import estimate
from costmodel.hardware.assumptions import Use, assumptions_for, whole
from costmodel.hardware.read import load_cluster
from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.model.graph import ModelGraph
from costmodel.model.read import load_model
from costmodel.problem import Problem
from planner import plan

CLUSTER = load_cluster("ascend910b-c500-1024")
DENSE, MOE = load_model("llama3-8b"), load_model("qwen3-30b-a3b")
JOB = Job(global_batch_size=64, sequence_length=4096)


def one_pipeline(*options: StageOption, layers: int) -> Layout:
    cuts = [layers * i // len(options) for i in range(len(options) + 1)]
    stages = tuple(
        Stage(
            option=option,
            chunks=((cuts[i], cuts[i + 1]),),
            embedding=i == 0,
            head=i == len(options) - 1,
        )
        for i, option in enumerate(options)
    )
    return Layout(pipelines=(Pipeline(stages=stages, microbatches=64),))


def assumed(model: ModelGraph, *options: StageOption) -> str:
    problem = Problem(model=model, cluster=CLUSTER, job=JOB)
    layout = one_pipeline(*options, layers=problem.model.num_layers)
    return "\n".join(assumptions_of(problem, layout))


def test_a_dense_model_on_one_pool() -> None:
    assert assumed(DENSE, StageOption(pool="ascend", tp=8)).splitlines() == [
        "chip huawei-ascend-910b2 (pool ascend): matmul_fraction = 0.7 for bf16 (class default)",
        "link hccs-910b (pool ascend): latency = 5 us (class default)",
    ]


def test_one_chip_uses_no_link() -> None:
    assert "link" not in assumed(DENSE, StageOption(pool="metax"))


def test_expert_parallelism_reads_all_to_all() -> None:
    spread = StageOption(pool="ascend", ep=8, replicas=8, sequence_parallel=False)
    assert "efficiency = 0.6 for all_to_all" in assumed(MOE, spread)
    assert "all_to_all" not in assumed(MOE, StageOption(pool="ascend", tp=8))


def test_stages_on_two_vendors_read_both_and_the_way_between() -> None:
    listed = assumed(DENSE, StageOption(pool="ascend", tp=8), StageOption(pool="metax", tp=8))
    assert "chip metax-c500 (pool metax): memory_fraction" in listed
    assert "pools ascend and metax: 0.5 of a link is left" in listed
    assert "link ethernet-100g" not in listed, "hand-overs over it were measured"


def test_without_a_layout_every_pool_with_the_precision_counts() -> None:
    problem = Problem(model=DENSE, cluster=CLUSTER, job=JOB)
    listed = "\n".join(assumptions_of(problem, None))
    assert "pool ascend" in listed
    assert "pool metax" in listed
    assert "all_to_all" not in listed


def test_pools_that_share_a_chip_are_said_once() -> None:
    mixed = load_cluster("mixed-10240")
    use = Use(pools=["ascend-a", "ascend-b"], precisions=["bf16"])
    said = "chip huawei-ascend-910b2 (pool ascend-a, pool ascend-b): matmul_fraction = 0.7 for bf16"
    assert assumptions_for(mixed, use) == (f"{said} (class default)",)
    assert len(assumptions_for(mixed, whole(mixed))) > 10


def test_an_estimate_on_a_pool_without_the_precision_is_refused_by_name() -> None:
    job = Job(global_batch_size=64, sequence_length=4096, precision="fp8")
    layout = one_pipeline(StageOption(pool="ascend", tp=8), layers=DENSE.num_layers)
    with pytest.raises(UnknownNumberError, match=r"pool ascend, .*fp8.*leave out the pool"):
        estimate(DENSE, CLUSTER, job, layout)


def test_a_plan_where_no_pool_has_the_precision_is_refused_by_name() -> None:
    job = Job(global_batch_size=64, sequence_length=4096, precision="fp8")
    with pytest.raises(UnknownNumberError, match=r"pool ib, .*NVIDIA A100.*fp8"):
        plan(DENSE, load_cluster("hybrid-64"), job)


def test_a_mesh_that_joins_more_chips_than_its_ports_reach_is_said() -> None:
    pool = {
        "name": "x",
        "nodes": 2,
        "chips_per_node": 16,
        "chip": "huawei-ascend-910b2",
        "scale_up": "hccs-910b",
        "scale_out": {"link": "roce-200g", "nics": 8},
    }
    said = "link hccs-910b (pool x): a full mesh of 8 chips is taken to join 16"
    for chips, expected in ((16, True), (8, False)):
        document = {
            "name": "c",
            "class_defaults": True,
            "pools": [pool | {"chips_per_node": chips}],
        }
        cluster = load_cluster(document)
        assert (said in assumptions_for(cluster, whole(cluster))) is expected
