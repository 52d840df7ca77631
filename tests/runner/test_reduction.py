"""What a reduction keeps, and what it says it lost."""

from dataclasses import replace

import pytest

from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from costmodel.model.graph import ModelGraph
from runner.degrees import num_ranks
from runner.reduction import MAX_LAYER_RUNS, Reduced, layer_runs, reduce_plan
from tests.runner.tiny import GROUPED, LLAMA, MOE, job, model, option, pipeline

Chain = list[tuple[int, int, int]]
BIG = replace(LLAMA, attention=replace(GROUPED, heads=8, kv_heads=8))


def small(graph: ModelGraph, layout: Layout, *, max_ranks: int = 16) -> Reduced:
    return reduce_plan(graph, layout, job(layout), max_ranks)


def chains(layout: Layout) -> list[Chain]:
    """(tp, replicas, micro_batch_size) along each pipeline."""
    return [
        [(s.option.tp, s.option.replicas, s.option.micro_batch_size) for s in p.stages]
        for p in layout.pipelines
    ]


def wide(tp: int, replicas: int, size: int) -> StageOption:
    return option(tp=tp, replicas=replicas, micro_batch_size=size, zero=1)


def test_a_plan_that_fits_keeps_its_degrees() -> None:
    layout = Layout(pipelines=(pipeline((3, option(tp=2)), (1, option()), microbatches=2),))

    found = small(model([LLAMA] * 4), layout)

    assert found.layout == layout
    assert not any(text.startswith(("ranks", "tp", "layers")) for text in found.reductions)


def test_copies_go_first() -> None:
    layout = Layout(pipelines=(pipeline((2, option(tp=2)), (2, option(tp=2)), count=8),))

    found = small(model([LLAMA] * 4), layout)

    assert [p.count for p in found.layout.pipelines] == [4]
    assert chains(found.layout) == [[(2, 1, 1), (2, 1, 1)]]
    assert "copies of each pipeline: 8 became 4" in found.reductions


def test_degrees_shrink_together_so_that_neighbours_still_differ() -> None:
    layout = Layout(pipelines=(pipeline((2, wide(8, 2, 4)), (2, wide(4, 4, 2)), count=2),))

    found = small(model([BIG] * 4), layout, max_ranks=4)

    assert chains(found.layout) == [[(2, 1, 4), (1, 2, 2)]]
    assert "tp: 8 | 4 became 2 | 1" in found.reductions
    assert "replicas: 2 | 4 became 1 | 2" in found.reductions
    assert "gradient sums over copies of the same pipeline" in found.not_covered


def test_micro_batch_size_times_replicas_is_constant() -> None:
    layout = Layout(
        pipelines=(
            pipeline((1, wide(4, 1, 8)), (1, wide(2, 2, 4)), (2, wide(1, 8, 1)), microbatches=9),
            pipeline((4, wide(2, 1, 2)), microbatches=7, count=3),
        )
    )

    found = small(model([BIG] * 4), layout)

    for p in found.layout.pipelines:
        assert {stage.option.samples for stage in p.stages} == {p.samples}
    first, second = found.layout.pipelines
    assert first.microbatches > second.microbatches >= 2
    assert found.job.global_batch_size == found.layout.samples


def test_alike_stages_are_merged_before_features_are_given_up() -> None:
    stages = [(1, option(tp=2, replicas=8, ep=16, zero=1))] * 10
    layout = Layout(pipelines=(pipeline(*stages, count=4),))

    found = small(model([MOE] * 10), layout)

    assert num_ranks(found.layout) <= 16
    assert {(s.option.tp, s.option.ep) for s in found.layout.pipelines[0].stages} == {(2, 2)}
    assert 2 <= len(found.layout.pipelines[0].stages) < 10
    assert found.layout.pipelines[0].stages[-1].chunks[-1][1] == 10


def test_pipelines_without_room_are_named() -> None:
    layout = Layout(
        pipelines=tuple(pipeline((4, option()), microbatches=n, count=1) for n in (2, 3, 4, 5, 6))
    )

    found = small(model([LLAMA] * 4), layout, max_ranks=3)

    assert len(found.layout.pipelines) == 3
    assert "kinds of pipelines: 5 became 3" in found.reductions


def test_too_many_layers_are_left_out_in_proportion() -> None:
    layers = [LLAMA] * 100 + [MOE] * 300
    layout = Layout(
        pipelines=(
            pipeline((100, option(tp=4)), (300, option(tp=4)), microbatches=64),
            pipeline((300, option(tp=4)), (100, option(tp=4)), microbatches=32),
        )
    )

    found = small(model(layers), layout)

    assert layer_runs(found.layout) <= MAX_LAYER_RUNS * 1.1
    a, b = found.layout.pipelines
    assert a.stages[0].num_layers == b.stages[1].num_layers < a.stages[1].num_layers
    assert set(found.graph.layers) == {"layer0", "layer1"}
    assert a.stages[1].chunks[0][1] == found.graph.num_layers


def test_interleaved_stages_merge_chunk_by_chunk() -> None:
    deep = [
        Stage(
            option=option(tp=2),
            chunks=((2 * i, 2 * i + 2), (16 + i, 17 + i)),
            embedding=i == 0,
            head=i == 7,
        )
        for i in range(8)
    ]
    layout = Layout(
        pipelines=(Pipeline(stages=tuple(deep), microbatches=32),),
        schedule=Schedule(kind="interleaved", virtual_stages=2),
    )

    found = small(model([LLAMA] * 24), layout, max_ranks=6)

    (reduced,) = found.layout.pipelines
    order = [stage.chunks[k] for k in range(2) for stage in reduced.stages]
    assert len(reduced.stages) == 3
    assert [a for a, _ in order] == [0, *(b for _, b in order[:-1])]
    assert order[-1][1] == 24
    assert reduced.microbatches % 3 == 0


@pytest.mark.parametrize("max_ranks", [1, 2, 4, 7, 16, 64])
def test_never_more_ranks_than_allowed(max_ranks: int) -> None:
    layout = Layout(
        pipelines=(
            pipeline((1, wide(8, 2, 4)), (3, wide(4, 4, 2)), microbatches=9, count=3),
            pipeline((2, wide(2, 1, 2)), (2, wide(2, 2, 1)), microbatches=7, count=5),
        )
    )

    found = small(model([BIG] * 4), layout, max_ranks=max_ranks)

    assert 1 <= num_ranks(found.layout) <= max_ranks
    assert found.reductions
