"""Rules on batches: what flows along a pipeline and what all pipelines add up to."""

from collections.abc import Iterator

from costmodel.errors import Violation
from costmodel.holders import segments
from costmodel.layout.rule_tools import advice, alternatives, divisors, nearest, places
from costmodel.layout.values import Layout, Pipeline
from costmodel.problem import Problem


def constant_samples(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """micro_batch_size x replicas is the same on all stages of a pipeline."""
    del problem
    for place in places(layout):
        wanted = layout.pipelines[place.pipeline].samples
        option = place.option
        if option.samples != wanted:
            rule = f"x replicas must be {wanted} as on the first stage"
            whole = wanted % option.replicas == 0
            fix = f"write {wanted // option.replicas}"
            if not whole:
                legal = nearest(option.replicas, divisors(wanted))
                fix = f"use replicas {alternatives(legal)} and micro_batch_size {wanted} / replicas"
            yield place.broken("micro_batch_size", rule, fix)


def batch_adds_up(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """count x microbatches x micro_batch_size x replicas over all pipelines is the global batch."""
    wanted, held = problem.job.global_batch_size, layout.samples
    if held == wanted:
        return
    parts = " + ".join(f"{p.count} x {p.microbatches} x {p.samples}" for p in layout.pipelines)
    yield Violation(
        field="/pipelines",
        value=f"{parts} = {held} sequences",
        rule=f"count x microbatches x samples must add up to the global batch size {wanted}",
        fix=_batch_advice(wanted, layout.pipelines),
    )


def _batch_advice(wanted: int, pipelines: tuple[Pipeline, ...]) -> str:
    first, others = pipelines[0], pipelines[1:]
    unit = first.count * first.samples
    rest = wanted - sum(p.count * p.microbatches * p.samples for p in others)
    if rest >= unit and rest % unit == 0:
        return f"write microbatches {rest // unit} in the first pipeline"
    sizes = nearest(max(rest, unit), (unit * k for k in (rest // unit, rest // unit + 1) if k > 0))
    batches = alternatives(size + wanted - rest for size in sizes)
    replicas = first.stages[0].option.replicas
    fix = f"use global batch size {batches}"
    if rest > 0 and rest % (first.count * replicas) == 0:
        legal = divisors(rest // (first.count * replicas))
        fix += f", or {advice('micro_batch_size', first.stages[0].option.micro_batch_size, legal)}"
    return f"{fix}, or give the pipelines different microbatches"


def zero_agrees(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Stages that share a layer shard its optimizer state alike."""
    del problem
    by_index = {(place.pipeline, place.index): place for place in places(layout)}
    seen: set[tuple[int, int]] = set()
    for segment in segments(layout):
        if not segment.holders:
            continue
        first = by_index[segment.holders[0]]
        for index in segment.holders[1:]:
            place = by_index[index]
            if place.option.zero != first.option.zero and index not in seen:
                seen.add(index)
                rule = f"must equal zero of {first.path}, which holds the same layers"
                yield place.broken("zero", rule, f"write {first.option.zero}")


BATCH_RULES = (constant_samples, batch_adds_up, zero_agrees)
