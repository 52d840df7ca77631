"""A small legal layout and changes to it."""

from dataclasses import replace
from typing import Any

from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from tests.layout.problems import DENSE_CONFIG, SPARSE_CONFIG, cluster, model, pool_document

DENSE, SPARSE = model(DENSE_CONFIG), model(SPARSE_CONFIG)
CLUSTER = cluster(pool_document("a", 4), pool_document("b", 2))


def base(graph: Any = DENSE, **option: Any) -> Layout:
    """Two copies of two stages, 4 chips each."""
    stages = tuple(
        Stage(
            option=replace(StageOption(pool="a", tp=2, replicas=2), **option),
            chunks=((4 * i, 4 * i + 4),),
            embedding=i == 0,
            head=i == 1,
            mtp=len(graph.mtp) * i,
        )
        for i in range(2)
    )
    return Layout(pipelines=(Pipeline(stages=stages, microbatches=64, count=2),))


def change_stage(layout: Layout, index: int, **changes: Any) -> Layout:
    """The layout with one stage of its first pipeline changed."""
    pipeline = layout.pipelines[0]
    stages = list(pipeline.stages)
    stages[index] = replace(stages[index], **changes)
    return replace(
        layout, pipelines=(replace(pipeline, stages=tuple(stages)), *layout.pipelines[1:])
    )


def change_option(layout: Layout, index: int, **changes: Any) -> Layout:
    """The layout with the option of one stage changed."""
    option = replace(layout.pipelines[0].stages[index].option, **changes)
    return change_stage(layout, index, option=option)


def scheduled(kind: str, virtual: int) -> Layout:
    return replace(base(), schedule=Schedule(kind=kind, virtual_stages=virtual))


def interleaved(microbatches: int) -> Layout:
    layout = change_stage(base(), 0, chunks=((0, 2), (4, 6)))
    layout = change_stage(layout, 1, chunks=((2, 4), (6, 8)))
    pipeline = replace(layout.pipelines[0], microbatches=microbatches)
    return Layout(pipelines=(pipeline,), schedule=Schedule(kind="interleaved", virtual_stages=2))


def two_chunks(kind: str, microbatches: int, **last: Any) -> Layout:
    """Both stages with the first and the second half of the layers, both ends on the first one."""
    layout = change_stage(base(), 0, chunks=((0, 4), (4, 8)), head=True)
    layout = change_stage(layout, 1, chunks=((0, 4), (4, 8)), **last)
    pipeline = replace(layout.pipelines[0], microbatches=microbatches)
    return Layout(pipelines=(pipeline,), schedule=Schedule(kind=kind, virtual_stages=2))
