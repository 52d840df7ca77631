"""Which stages of a uniform layout are alike: one shape for every pp and vp."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from costmodel.batch.rows import IntArray
from costmodel.layout.split import balanced, ranges
from costmodel.layout.values import Stage, StageOption
from costmodel.model.graph import ModelGraph

NOWHERE = StageOption(pool="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Blocks whose gradients are summed together: layers [start, stop), or the blocks of an end.

    part: ``layers``, ``embedding``, ``head`` or ``mtp``. both_ends: its stage holds both ends.
    """

    part: str
    start: int = 0
    stop: int = 0
    both_ends: bool = False


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Shape:
    """The stages of a pipeline with p stages of v chunks each, alike ones told apart once.

    stages: one stage of each kind; stage_kinds: the kind of each stage, (p,).
    chunks: one chunk of each kind, as a stage of its own; chunk_kinds: the kind of each chunk in
    layer order, (p v,).
    runs: one run of each kind; held: how many of each a stage of each kind holds, (runs, kinds).
    """

    stages: tuple[Stage, ...]
    stage_kinds: IntArray
    chunks: tuple[Stage, ...]
    chunk_kinds: IntArray
    runs: tuple[Run, ...]
    held: IntArray


def shape_of(model: ModelGraph, pp: int, vp: int) -> Shape:
    """Stages and chunks that hold equally many of each block, and the same ends, are alike."""
    chunks = _chunks(model, pp, vp)
    stages = [_joined(chunks[i::pp]) for i in range(pp)]
    stage_kinds, first_stages = _kinds(model, stages)
    chunk_kinds, first_chunks = _kinds(model, chunks)
    kinds = tuple(stages[i] for i in first_stages)
    runs, held = _runs(model, kinds)
    return Shape(
        stages=kinds,
        stage_kinds=stage_kinds,
        chunks=tuple(chunks[i] for i in first_chunks),
        chunk_kinds=chunk_kinds,
        runs=runs,
        held=held,
    )


def _chunks(model: ModelGraph, pp: int, vp: int) -> list[Stage]:
    last = pp * vp - 1
    return [
        Stage(
            option=NOWHERE,
            chunks=(own,),
            embedding=i == 0,
            head=i == last,
            mtp=len(model.mtp) if i == last else 0,
        )
        for i, own in enumerate(ranges(balanced(model.num_layers, pp * vp)))
    ]


def _joined(chunks: list[Stage]) -> Stage:
    return Stage(
        option=NOWHERE,
        chunks=tuple(own for chunk in chunks for own in chunk.chunks),
        embedding=any(chunk.embedding for chunk in chunks),
        head=any(chunk.head for chunk in chunks),
        mtp=sum(chunk.mtp for chunk in chunks),
    )


def _kinds(model: ModelGraph, stages: list[Stage]) -> tuple[IntArray, list[int]]:
    found: dict[object, int] = {}
    first: list[int] = []
    kinds = np.empty(len(stages), np.int64)
    for i, stage in enumerate(stages):
        key = _contents(model, stage), stage.embedding, stage.head, stage.mtp
        if key not in found:
            found[key] = len(first)
            first.append(i)
        kinds[i] = found[key]
    return kinds, first


def _contents(model: ModelGraph, stage: Stage) -> frozenset[tuple[object, int]]:
    layers = Counter((model.layers[i], model.boundaries.get(i, ())) for i in stage.layers)
    return frozenset(layers.items())


def _runs(model: ModelGraph, kinds: tuple[Stage, ...]) -> tuple[tuple[Run, ...], IntArray]:
    first: dict[object, Run] = {}
    counts: list[Counter[object]] = []
    for stage in kinds:
        own: Counter[object] = Counter()
        for key, run in _runs_of(model, stage):
            first.setdefault(key, run)
            own[key] += 1
        counts.append(own)
    held = np.array([[own[key] for own in counts] for key in first], dtype=np.int64)
    return tuple(first.values()), held


def _runs_of(model: ModelGraph, stage: Stage) -> Iterator[tuple[object, Run]]:
    """Runs of a stage, each with a key that alike ones share."""
    for start, stop in stage.chunks:
        if stop > start:
            run = Run(part="layers", start=start, stop=stop)
            yield _contents(model, replace(stage, chunks=((start, stop),))), run
    for part, held in (("embedding", stage.embedding), ("head", stage.head), ("mtp", stage.mtp)):
        if held:
            yield part, Run(part=part, both_ends=stage.embedding and stage.head)
