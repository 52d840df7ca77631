"""Each kind of parallelism alone: equal to one process, and traffic equal to the forecast."""

from collections.abc import Callable

import pytest

from costmodel.layout.values import Pipeline, Schedule, Stage, StageOption
from costmodel.model.graph import ModelGraph
from tests.runner.tiny import GPT, LLAMA, MOE, SHARED_MOE, check, model, option, pipeline

DENSE = model([LLAMA] * 3)

STAGE_OPTIONS: dict[str, StageOption] = {
    "alone": option(),
    "tensor and sequence parallel": option(tp=2),
    "tensor parallel": option(tp=2, sequence_parallel=False),
    "context parallel": option(cp=2),
    "replicas": option(replicas=2),
    "tensor and context parallel": option(tp=2, cp=2),
}


@pytest.mark.parametrize("chosen", STAGE_OPTIONS.values(), ids=STAGE_OPTIONS.keys())
def test_one_stage(chosen: StageOption) -> None:
    check(DENSE, pipeline((3, chosen)))


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_sharded_state(zero: int) -> None:
    chosen = option(tp=2, replicas=2, zero=zero)

    check(DENSE, pipeline((3, chosen), microbatches=3))


@pytest.mark.parametrize("recompute", ["selective", "full"])
def test_recompute(recompute: str) -> None:
    check(DENSE, pipeline((3, option(tp=2, cp=2, recompute=recompute))))


def test_uneven_stages() -> None:
    check(model([LLAMA] * 4), pipeline((3, option()), (1, option()), microbatches=4))


def test_stages_at_the_ends_without_layers() -> None:
    stages = (0, option()), (3, option(tp=2)), (0, option())

    check(DENSE, pipeline(*stages, microbatches=3))


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_schedules_compute_the_same(schedule: str) -> None:
    stages = (1, option()), (1, option()), (1, option())

    check(DENSE, pipeline(*stages, microbatches=4), schedule=Schedule(kind=schedule))


def interleaved(*stages: tuple[StageOption, tuple[tuple[int, int], ...]]) -> Pipeline:
    """Stages of (option, chunks), with two micro-batches for each stage."""
    last = len(stages) - 1
    found = [
        Stage(option=chosen, chunks=chunks, embedding=i == 0, head=i == last)
        for i, (chosen, chunks) in enumerate(stages)
    ]
    return Pipeline(stages=tuple(found), microbatches=2 * len(stages))


INTERLEAVED: dict[str, tuple[Pipeline, ...]] = {
    "two stages": (
        interleaved((option(tp=2), ((0, 2), (3, 4))), (option(zero=0), ((2, 3), (4, 5)))),
    ),
    "three stages": (
        interleaved(*((option(), ((i, i + 1), (i + 3, min(5, i + 4)))) for i in range(3))),
    ),
    "beside a single stage": (
        interleaved((option(zero=1), ((0, 1), (2, 4))), (option(zero=1), ((1, 2), (4, 5)))),
        interleaved((option(zero=1), ((0, 3), (3, 5)))),
    ),
}


@pytest.mark.parametrize("pipelines", INTERLEAVED.values(), ids=INTERLEAVED.keys())
def test_several_chunks_per_stage(pipelines: tuple[Pipeline, ...]) -> None:
    schedule = Schedule(kind="interleaved", virtual_stages=2)

    check(model([LLAMA] * 5), *pipelines, schedule=schedule)


@pytest.mark.parametrize("parallel", [True, False], ids=["sequence parallel", "plain"])
def test_neighbours_with_other_tensor_parallelism(parallel: bool) -> None:
    wide = option(tp=2, sequence_parallel=parallel)

    check(DENSE, pipeline((2, wide), (1, option()), microbatches=3))


def test_neighbours_with_other_replicas() -> None:
    stages = (2, option(micro_batch_size=2)), (1, option(replicas=2))

    check(DENSE, pipeline(*stages, microbatches=3))


def test_neighbours_with_other_context_parallelism() -> None:
    stages = (1, option(tp=2)), (2, option(cp=2))

    check(DENSE, pipeline(*stages))


def test_pipelines_with_other_microbatch_counts() -> None:
    check(
        DENSE,
        pipeline((2, option()), (1, option()), microbatches=3),
        pipeline((3, option()), microbatches=2),
    )


def test_copies_of_one_pipeline() -> None:
    outcome = check(DENSE, pipeline((2, option()), (1, option()), count=2))

    assert {("pp", (0, 1)), ("pp", (2, 3)), ("dp", (0, 2))} <= set(outcome.observed)


EXPERT_OPTIONS: dict[str, StageOption] = {
    "all experts on every rank": option(replicas=2),
    "expert parallel over replicas": option(ep=2, replicas=2),
    "expert parallel over tp": option(ep=2, tp=2),
    "expert tensor parallel": option(etp=2, tp=2),
    "both": option(ep=2, etp=2, tp=2, replicas=2),
    "without sequence parallel": option(ep=2, tp=2, sequence_parallel=False),
}


@pytest.mark.parametrize("chosen", EXPERT_OPTIONS.values(), ids=EXPERT_OPTIONS.keys())
def test_experts(chosen: StageOption) -> None:
    check(model([LLAMA, MOE]), pipeline((2, chosen)))


MODELS: dict[str, Callable[[], ModelGraph]] = {
    "biases and layer norms": lambda: model([GPT] * 2),
    "latent attention with shared experts": lambda: model([SHARED_MOE]),
    "tied embedding": lambda: model([LLAMA] * 2, tied=True),
}


@pytest.mark.parametrize("parallel", [True, False], ids=["sequence parallel", "plain"])
@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS.keys())
def test_model_under_tensor_parallelism(build: Callable[[], ModelGraph], parallel: bool) -> None:
    what = build()

    check(what, pipeline((what.num_layers, option(tp=2, sequence_parallel=parallel))))


TIED: dict[str, tuple[Pipeline, ...]] = {
    "two stages": (pipeline((2, option(tp=2)), (1, option())),),
    "one pipeline has both ends on one stage": (
        pipeline((1, option()), (2, option())),
        pipeline((3, option())),
    ),
}


@pytest.mark.parametrize("pipelines", TIED.values(), ids=TIED.keys())
def test_tied_embedding_between_stages(pipelines: tuple[Pipeline, ...]) -> None:
    outcome = check(model([LLAMA] * 3, tied=True), *pipelines)

    assert "embedding" in {kind for kind, _ in outcome.observed}
