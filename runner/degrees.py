"""Smaller parallel degrees that keep what a layout is about: features, and differences.

All stages with one degree get the same smaller degree, larger degrees never become smaller than
those below them, and among all such maps that fit the ranks the one that keeps most is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import lcm

from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from runner.merging import Merged, fitted

KINDS = ("tp", "cp", "replicas", "ep", "etp")
SMALL = (1, 2, 4)
MAX_MAPS = 4000

FEATURE, DIFFERENCE, DISTINCT, UNCHANGED, COPIES = 25.0, 6.0, 3.0, 0.3, 5.0
PER_RANK = -0.01

DegreeMap = Mapping[str, Mapping[int, int]]
"""Kind -> original degree -> smaller degree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A layout that fits, how its degrees came about, and what was merged or dropped."""

    layout: Layout
    degrees: DegreeMap
    merged: Merged
    score: float


def shrink(layout: Layout, max_ranks: int) -> Shrunk:
    """The layout with smaller degrees, merged stages and fewer copies that keeps most.

    One stage of one rank always fits.
    """
    single = replace(layout, pipelines=tuple(replace(p, count=1) for p in layout.pipelines))
    tried = (_tried(layout, single, chosen, max_ranks) for chosen in _maps(layout))
    return max((t for t in tried if t is not None), key=lambda t: t.score)


def _tried(layout: Layout, single: Layout, chosen: DegreeMap, max_ranks: int) -> Shrunk | None:
    smaller = _apply(single, chosen)
    if smaller is None:
        return None
    merged = fitted(smaller, max_ranks)
    if num_ranks(merged.layout) > max_ranks:
        return None
    result = _with_copies(layout, merged, max_ranks)
    score = _score(layout, smaller, chosen) + _merge_score(layout, result, merged)
    return Shrunk(layout=result, degrees=chosen, merged=merged, score=score)


def options(layout: Layout) -> Iterator[StageOption]:
    """Options of all stages."""
    return (stage.option for pipeline in layout.pipelines for stage in pipeline.stages)


def num_ranks(layout: Layout) -> int:
    """Processes that the layout needs."""
    return sum(p.count * s.option.num_chips for p in layout.pipelines for s in p.stages)


def _maps(layout: Layout) -> Iterator[DegreeMap]:
    choices = {kind: list(_maps_of(kind, layout)) for kind in KINDS}
    size = 1
    for maps in choices.values():
        size *= len(maps)
    if size > MAX_MAPS:
        choices = {kind: maps[:1] + maps[-4:] for kind, maps in choices.items()}
    for chosen in product(*choices.values()):
        yield dict(zip(choices, chosen, strict=True))


def _maps_of(kind: str, layout: Layout) -> Iterator[dict[int, int]]:
    """Monotone maps of the degrees that occur to themselves or to small ones."""
    values = sorted({getattr(option, kind) for option in options(layout)})
    targets = [sorted({t for t in (*SMALL, value) if t <= value}) for value in values]
    for chosen in product(*targets):
        if all(a <= b for a, b in pairwise(chosen)):
            yield dict(zip(values, chosen, strict=True))


def _apply(layout: Layout, chosen: DegreeMap) -> Layout | None:
    """The layout with these degrees; None when an expert grid would not fit its stage."""
    pipelines = [_smaller(pipeline, chosen) for pipeline in layout.pipelines]
    found = [p for p in pipelines if p is not None]
    return replace(layout, pipelines=tuple(found)) if len(found) == len(pipelines) else None


def _smaller(pipeline: Pipeline, chosen: DegreeMap) -> Pipeline | None:
    """micro_batch_size x replicas stays constant along the stages, and as small as it can be."""
    degrees = [{k: chosen[k][getattr(s.option, k)] for k in KINDS} for s in pipeline.stages]
    samples = lcm(*(d["replicas"] for d in degrees))
    samples *= 2 if min(s.option.micro_batch_size for s in pipeline.stages) > 1 else 1
    stages: list[Stage] = []
    for stage, found in zip(pipeline.stages, degrees, strict=True):
        option = replace(
            stage.option,
            tp=found["tp"],
            cp=found["cp"],
            replicas=found["replicas"],
            ep=found["ep"],
            etp=found["etp"],
            micro_batch_size=samples // found["replicas"],
        )
        if option.num_chips % (option.ep * option.etp):
            return None
        stages.append(replace(stage, option=option))
    return replace(pipeline, stages=tuple(stages))


def _with_copies(layout: Layout, merged: Merged, max_ranks: int) -> Layout:
    """Second and further copies of pipelines that have them, as far as ranks are left."""
    found = list(merged.layout.pipelines)
    for want in range(2, max(p.count for p in layout.pipelines) + 1):
        for index in sorted(range(len(found)), key=lambda i: _size(found[i])):
            original = layout.pipelines[merged.kept[index]]
            left = max_ranks - sum(p.count * _size(p) for p in found)
            if (
                original.count >= want
                and found[index].count == want - 1
                and _size(found[index]) <= left
            ):
                found[index] = replace(found[index], count=want)
    return replace(merged.layout, pipelines=tuple(found))


def _size(pipeline: Pipeline) -> int:
    return sum(stage.option.num_chips for stage in pipeline.stages)


def _score(layout: Layout, smaller: Layout, chosen: DegreeMap) -> float:
    """Features (a degree above 1), differences between neighbours and between all stages."""
    total = 0.0
    for kind, degrees in chosen.items():
        total += FEATURE * (max(degrees) > 1 and max(degrees.values()) > 1)
        total += DISTINCT * (len(set(degrees.values())) - 1)
        total += UNCHANGED * all(a == b for a, b in degrees.items())
        before, after = _neighbours(layout, kind), _neighbours(smaller, kind)
        kept = {i for i in before if i in after}
        total += DIFFERENCE * len({pipeline for pipeline, _ in kept})
    return total


def _neighbours(layout: Layout, kind: str) -> set[tuple[int, int]]:
    """(pipeline, stage) whose next stage has another degree."""
    return {
        (p, i)
        for p, pipeline in enumerate(layout.pipelines)
        for i, (a, b) in enumerate(pairwise(pipeline.stages))
        if getattr(a.option, kind) != getattr(b.option, kind)
    }


def _merge_score(layout: Layout, result: Layout, merged: Merged) -> float:
    total = PER_RANK * num_ranks(result) - merged.loss
    if any(p.count > 1 for p in layout.pipelines):
        total += COPIES * any(p.count > 1 for p in result.pipelines)
    return total
