"""A plan small enough to execute on one machine, and what its execution no longer shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline
from costmodel.model.graph import ModelGraph
from costmodel.model.reduce import Degrees, reduced, shrink_sizes
from runner.degrees import KINDS, Shrunk, num_ranks, options, shrink
from runner.fewer_layers import fewer_layers

MIN_SEQUENCE = 16
VOCABULARY = 37
"""No power of two divides it, so that the padding of the vocabulary is exercised."""
MAX_LAYER_RUNS = 8000
"""Layers x micro-batches x ranks that still take well under a minute on two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """What is executed instead of the plan."""

    graph: ModelGraph
    layout: Layout
    job: Job
    reductions: tuple[str, ...]
    not_covered: tuple[str, ...]


def reduce_plan(graph: ModelGraph, layout: Layout, job: Job, max_ranks: int) -> Reduced:
    """Fewer copies, smaller degrees, merged stages, fewer micro-batches, small widths.

    Layers stay as they are unless there are too many to run.
    """
    shrunk = shrink(layout, max_ranks)
    smaller = fewer_microbatches(shrunk.layout)
    runs = layer_runs(smaller)
    model = graph
    if runs > MAX_LAYER_RUNS:
        model, smaller = fewer_layers(graph, smaller, MAX_LAYER_RUNS / runs)
    length = _sequence_length(smaller)
    degrees = Degrees(
        tp=lcm(*(o.tp for o in options(smaller))),
        ep=lcm(*(o.ep for o in options(smaller))),
        etp=lcm(*(o.etp for o in options(smaller))),
    )
    sizes = shrink_sizes(model, degrees, positions=length)
    sizes |= {"vocab": VOCABULARY} if "vocab" in sizes else {}
    small = reduced(model, sizes, sequence_length=length)
    small_job = replace(
        job, global_batch_size=smaller.samples, sequence_length=length, vocab_divisor=1
    )
    notes = _Notes(graph=graph, layout=layout, job=job, shrunk=shrunk)
    return Reduced(
        graph=small,
        layout=smaller,
        job=small_job,
        reductions=notes.reductions(small, smaller, small_job),
        not_covered=notes.not_covered(smaller),
    )


def layer_runs(layout: Layout) -> int:
    """Layers x micro-batches x ranks of a step."""
    return sum(
        p.count * p.microbatches * stage.num_layers * stage.option.num_chips
        for p in layout.pipelines
        for stage in p.stages
    )


def fewer_microbatches(layout: Layout) -> Layout:
    """Few micro-batches, but still different ones where pipelines differ.

    As many as fill the deepest pipeline if that is little work, else two at least.
    """
    deepest = max(len(p.stages) for p in layout.pipelines)
    tried = (with_microbatches(layout, least) for least in range(deepest + 1, 1, -1))
    shortest = with_microbatches(layout, 2)
    return next((t for t in tried if layer_runs(t) <= MAX_LAYER_RUNS // 2), shortest)


def with_microbatches(layout: Layout, least: int) -> Layout:
    """``least`` for the pipelines that have fewest, one more for the next, and so on.

    Interleaved stages take them in groups of one for each stage.
    """
    values = sorted({p.microbatches for p in layout.pipelines})
    small = {value: min(value, least + index) for index, value in enumerate(values)}

    def shorter(pipeline: Pipeline) -> Pipeline:
        group = len(pipeline.stages) if layout.schedule.virtual_stages > 1 else 1
        whole = -(-small[pipeline.microbatches] // group) * group
        return replace(pipeline, microbatches=whole)

    return replace(layout, pipelines=tuple(shorter(p) for p in layout.pipelines))


def _sequence_length(layout: Layout) -> int:
    unit = 2 * lcm(*(o.tp * o.cp for o in options(layout)))
    return unit * -(-MIN_SEQUENCE // unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notes:
    """Sentences about a reduction."""

    graph: ModelGraph
    layout: Layout
    job: Job
    shrunk: Shrunk

    def reductions(self, small: ModelGraph, layout: Layout, job: Job) -> tuple[str, ...]:
        old, new = self.layout, layout
        found = [
            _became("ranks", num_ranks(old), num_ranks(new)),
            _became("kinds of pipelines", len(old.pipelines), len(new.pipelines)),
            _became("copies of each pipeline", _counts(old), _counts(new)),
            *(_became(kind, _chains(old, kind), _chains(new, kind)) for kind in KINDS),
            _became("stages of each pipeline", _depths(old), _depths(new)),
            _became("micro-batches", _microbatches(old), _microbatches(new)),
            _became("layers", self.graph.num_layers, small.num_layers),
            _became("tokens per sequence", self.job.sequence_length, job.sequence_length),
            _became("sequences per step", self.job.global_batch_size, job.global_batch_size),
            _became("widths", _widths(self.graph), _widths(small)),
        ]
        return tuple(sentence for sentence in found if sentence)

    def not_covered(self, layout: Layout) -> tuple[str, ...]:
        lost = [_lost(kind, self.layout, layout) for kind in KINDS]
        different = self.shrunk.merged.different
        copies, left = (max(p.count for p in x.pipelines) for x in (self.layout, layout))
        shallow = any(p.microbatches < len(p.stages) for p in layout.pipelines)
        parts = ", ".join(component.name for component in self.graph.components)
        claims = {
            "gradient sums over copies of the same pipeline": copies > 1 and left == 1,
            "boundaries between stages that were merged though they differ": (
                self.shrunk.merged.unlike > 0
            ),
            f"{different} kinds of pipelines that found no room": different > 0,
            "the steady part of the schedule on the first stages": shallow,
            f"components beside the main stack: {parts}": bool(parts),
            f"{self.job.precision} arithmetic (executed in float64)": True,
        }
        return (*filter(None, lost), *(text for text, holds in claims.items() if holds))


def _lost(kind: str, old: Layout, new: Layout) -> str:
    """What the smaller degrees of one kind no longer show."""
    had, has = ({getattr(o, kind) for o in options(x)} for x in (old, new))
    if max(had) > 1 and max(has) == 1:
        return f"{kind} above 1"
    return f"the differences between {kind} {_words(sorted(had))}" if len(has) < len(had) else ""


def _became(what: str, old: object, new: object) -> str:
    return "" if old == new else f"{what}: {old} became {new}"


def _words(values: list[int]) -> str:
    return " | ".join(str(value) for value in values)


def _chains(layout: Layout, kind: str) -> str:
    """Degrees along the stages of each pipeline, runs of equal ones written once."""
    chains: list[str] = []
    for pipeline in layout.pipelines:
        values = [getattr(stage.option, kind) for stage in pipeline.stages]
        runs = [v for i, v in enumerate(values) if i == 0 or v != values[i - 1]]
        chains.append(_words(runs))
    return ", ".join(dict.fromkeys(chains))


def _counts(layout: Layout) -> str:
    return ", ".join(str(p.count) for p in layout.pipelines)


def _depths(layout: Layout) -> str:
    return ", ".join(str(len(p.stages)) for p in layout.pipelines)


def _microbatches(layout: Layout) -> str:
    return ", ".join(str(p.microbatches) for p in layout.pipelines)


def _widths(graph: ModelGraph) -> str:
    block = graph.blocks[graph.layers[-1]]
    names = ("hidden", "heads", "kv_heads", "ffn", "experts")
    return ", ".join(f"{name} {block.dims[name]}" for name in names if name in block.dims)
