"""Merges neighbouring stages, and drops pipelines, until a layout fits a number of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from costmodel.layout.values import Layout, Pipeline, Stage, StageOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A layout that fits, with one copy of each pipeline.

    alike, unlike: merged pairs with equal and with different options. kept: indices of the
    pipelines that are left.
    """

    layout: Layout
    alike: int
    unlike: int
    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Two neighbouring stages. last: no boundary would be left; pools: they are in two pools."""

    pipeline: int
    stage: int
    unlike: bool
    last: bool
    pools: bool
    length: int


def fitted(layout: Layout, max_ranks: int) -> Merged:
    """Merges alike pairs first, in the longest pipeline; then drops the last pipelines."""
    pipelines = list(layout.pipelines)
    counts = [0, 0]
    while _ranks(pipelines) > max_ranks:
        pairs = list(_pairs(pipelines))
        if not pairs:
            if len(pipelines) == 1:
                break
            pipelines.pop()
            continue
        pair = min(pairs, key=lambda p: (p.unlike, p.last, p.pools, -p.length))
        pipelines[pair.pipeline] = _merge(pipelines[pair.pipeline], pair.stage)
        counts[pair.unlike] += 1
    return Merged(
        layout=replace(layout, pipelines=tuple(pipelines)),
        alike=counts[0],
        unlike=counts[1],
        kept=tuple(range(len(pipelines))),
    )


def _ranks(pipelines: list[Pipeline]) -> int:
    return sum(stage.option.num_chips for p in pipelines for stage in p.stages)


def _pairs(pipelines: list[Pipeline]) -> Iterator[_Pair]:
    for p, pipeline in enumerate(pipelines):
        for s in range(len(pipeline.stages) - 1):
            a, b = pipeline.stages[s], pipeline.stages[s + 1]
            unlike = _key(a.option) != _key(b.option)
            yield _Pair(
                pipeline=p,
                stage=s,
                unlike=unlike,
                last=len(pipeline.stages) == 2,
                pools=a.option.pool != b.option.pool,
                length=len(pipeline.stages),
            )


def _key(option: StageOption) -> StageOption:
    return replace(option, pool="")


def _merge(pipeline: Pipeline, index: int) -> Pipeline:
    """One stage for two, with the option of the one that holds more layers."""
    a, b = pipeline.stages[index], pipeline.stages[index + 1]
    larger = a if a.num_layers >= b.num_layers else b
    both = Stage(
        option=larger.option,
        chunks=((a.chunks[0][0], b.chunks[-1][1]),),
        embedding=a.embedding or b.embedding,
        head=a.head or b.head,
        mtp=a.mtp + b.mtp,
    )
    stages = (*pipeline.stages[:index], both, *pipeline.stages[index + 2 :])
    return replace(pipeline, stages=stages)
