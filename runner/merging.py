"""Merges neighbouring stages, and drops pipelines, until a layout fits a number of ranks.

Always the step that loses least: neighbours with equal options become one stage; a pipeline goes
whose stages are those of another; then come steps that lose a difference, a boundary or a kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from costmodel.layout.values import Layout, Pipeline, Stage, StageOption

ALIKE, TWIN, MODES, UNLIKE, LAST, DIFFERENT = 1.0, 2.0, 5.0, 12.0, 12.0, 15.0
"""Losses: merging equal stages, dropping a twin, merging stages that differ in recompute only, in
more than that, the last boundary of a pipeline (added), dropping a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A layout that fits (if it can), with one copy of each pipeline.

    kept: indices of the pipelines that are left. loss: of all steps. unlike: merged pairs with
    different options. different: dropped pipelines that had no twin.
    """

    layout: Layout
    kept: tuple[int, ...]
    loss: float
    unlike: int
    different: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """Merges stages ``stage`` and ``stage + 1`` of a pipeline, or drops it (stage None).

    pools: the pair is in two pools. length: stages of the pipeline.
    """

    loss: float
    pools: bool
    length: int
    pipeline: int
    stage: int | None


def fitted(layout: Layout, max_ranks: int) -> Merged:
    """The layout after the steps that lose least, until it fits or nothing is left to do."""
    pipelines = dict(enumerate(layout.pipelines))
    taken: list[_Step] = []
    while _ranks(pipelines) > max_ranks:
        steps = list(_steps(pipelines))
        if not steps:
            break
        step = min(steps, key=lambda s: (s.loss, s.pools, -s.length, -s.pipeline))
        taken.append(step)
        if step.stage is None:
            del pipelines[step.pipeline]
        else:
            pipelines[step.pipeline] = _merge(pipelines[step.pipeline], step.stage)
    return Merged(
        layout=replace(layout, pipelines=tuple(pipelines.values())),
        kept=tuple(pipelines),
        loss=sum(step.loss for step in taken),
        unlike=sum(
            step.stage is not None and step.loss not in (ALIKE, ALIKE + LAST) for step in taken
        ),
        different=sum(step.stage is None and step.loss >= DIFFERENT for step in taken),
    )


def _ranks(pipelines: dict[int, Pipeline]) -> int:
    return sum(stage.option.num_chips for p in pipelines.values() for stage in p.stages)


def _steps(pipelines: dict[int, Pipeline]) -> Iterator[_Step]:
    keys = {index: _key(pipeline) for index, pipeline in pipelines.items()}
    for index, pipeline in pipelines.items():
        length = len(pipeline.stages)
        twin = sum(key == keys[index] for key in keys.values()) > 1
        if len(pipelines) > 1:
            loss = TWIN if twin else DIFFERENT
            yield _Step(loss=loss, pools=False, length=length, pipeline=index, stage=None)
        for s in range(length - 1):
            a, b = pipeline.stages[s].option, pipeline.stages[s + 1].option
            loss = _difference(a, b) + (LAST if length == 2 else 0.0)
            pools = a.pool != b.pool
            yield _Step(loss=loss, pools=pools, length=length, pipeline=index, stage=s)


def _difference(a: StageOption, b: StageOption) -> float:
    if _plain(a) == _plain(b):
        return ALIKE
    return MODES if _plain(a) == replace(_plain(b), recompute=a.recompute) else UNLIKE


def _key(pipeline: Pipeline) -> tuple[StageOption, ...]:
    """Options along the stages, each run of equal ones once."""
    plain = [_plain(stage.option) for stage in pipeline.stages]
    return tuple(o for i, o in enumerate(plain) if i == 0 or o != plain[i - 1])


def _plain(option: StageOption) -> StageOption:
    return replace(option, pool="")


def _merge(pipeline: Pipeline, index: int) -> Pipeline:
    """One stage for two, with the option of the one that holds more layers."""
    a, b = pipeline.stages[index], pipeline.stages[index + 1]
    larger = a if a.num_layers >= b.num_layers else b
    both = Stage(
        option=larger.option,
        chunks=tuple((x[0], y[1]) for x, y in zip(a.chunks, b.chunks, strict=True)),
        embedding=a.embedding or b.embedding,
        head=a.head or b.head,
        mtp=a.mtp + b.mtp,
    )
    stages = (*pipeline.stages[:index], both, *pipeline.stages[index + 2 :])
    return replace(pipeline, stages=stages)
