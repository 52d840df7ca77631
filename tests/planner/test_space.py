"""The declared space: every option is legal, and every rule that leaves some out is counted."""

import pytest

from costmodel.errors import InputError
from costmodel.hardware.read import load_cluster
from costmodel.job import Job
from costmodel.layout.rules import violations
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.model.graph import ModelGraph
from costmodel.model.read import load_model
from costmodel.problem import Problem
from planner.pins import Pins, pinned
from planner.space import Space, clip, declare
from planner.targets.registry import target_called

JOB = Job(global_batch_size=256, sequence_length=4096)


def declared(model: str, cluster: str, job: Job = JOB) -> Space:
    return declare(load_model(model), load_cluster(cluster), job, target="runner", evaluator="1")


def one_stage(model: ModelGraph, option: StageOption) -> Layout:
    stage = Stage(
        option=option,
        chunks=((0, model.num_layers),),
        embedding=True,
        head=True,
        mtp=len(model.mtp),
    )
    microbatches = JOB.global_batch_size // option.samples
    return Layout(pipelines=(Pipeline(stages=(stage,), microbatches=microbatches),))


@pytest.mark.parametrize("name", ["llama3-8b", "mixtral-8x7b", "deepseek-v3"])
def test_every_option_obeys_the_rules_of_layouts(name: str) -> None:
    model, cluster = load_model(name), load_cluster("hybrid-64")
    problem = Problem(model=model, cluster=cluster, job=JOB)
    options = declared(name, "hybrid-64").options

    assert options
    for option in options[:: max(1, len(options) // 200)]:
        assert violations(problem, one_stage(model, option)) == ()


def test_wishes_of_the_job_clip_the_space() -> None:
    job = Job(global_batch_size=256, sequence_length=4096, micro_batch_size=2, recompute="full")

    options = declared("llama3-8b", "hybrid-64", job).options

    assert {o.micro_batch_size for o in options} == {2}
    assert {o.recompute for o in options} == {"full"}


def test_every_candidate_is_an_option_or_counted() -> None:
    space = declared("llama3-70b", "a100-v100-256")

    left_out = space.pruned["precision_of_the_chip"]
    assert left_out > 0
    assert {o.pool for o in space.options} < set(space.pools)
    assert space.document()["options"] == len(space.options)


def test_expert_groups_fill_their_replicas() -> None:
    for o in declared("mixtral-8x7b", "hybrid-64").options:
        assert o.replicas == max(1, o.ep // (o.tp * o.cp))


def test_long_sequences_offer_context_parallelism() -> None:
    job = Job(global_batch_size=32, sequence_length=131072)

    assert {o.cp for o in declared("llama3.1-8b", "hybrid-64", job).options} >= {1, 2, 4}
    assert {o.cp for o in declared("llama3.1-8b", "hybrid-64").options} == {1}


def test_schedule_that_the_search_does_not_cover_is_refused() -> None:
    job = Job(global_batch_size=256, sequence_length=4096, schedule="dualpipe")

    with pytest.raises(InputError, match="1f1b or gpipe"):
        declared("llama3-8b", "hybrid-64", job)


def schedules_of(target: str, chunks: frozenset[int] = frozenset()) -> tuple[str, ...]:
    problem = Problem(model=load_model("llama3-8b"), cluster=load_cluster("hybrid-64"), job=JOB)
    space = declare(problem.model, problem.cluster, JOB, target="any", evaluator="1")
    return clip(space, problem, pinned(target_called(target), Pins(chunks=chunks))).schedules


def test_schedules_are_those_that_the_target_and_the_pins_allow() -> None:
    assert schedules_of("megatron") == ("1f1b", "interleaved")
    assert schedules_of("flagscale") == ("1f1b",)
    assert schedules_of("megatron", frozenset({2, 4})) == ("interleaved",)
    assert schedules_of("any", frozenset({1})) == ("1f1b",)


def test_chunks_that_the_target_cannot_run_leave_nothing_and_are_counted() -> None:
    problem = Problem(model=load_model("llama3-8b"), cluster=load_cluster("hybrid-64"), job=JOB)
    space = declare(problem.model, problem.cluster, JOB, target="any", evaluator="1")
    left = clip(space, problem, pinned(target_called("flagscale"), Pins(chunks=frozenset({2}))))

    assert left.options == ()
    assert left.pruned["schedule"] > 0
