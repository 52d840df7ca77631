"""Why this plan: what limits it, where its time goes, and what each change would do.

Every change is evaluated exactly, with the same evaluator as the plan; a change that does not fit
says how much memory it lacks.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from costmodel.errors import InputError
from costmodel.evaluation import Evaluation
from costmodel.job import RECOMPUTE_MODES
from costmodel.layout.rules import violations
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.pipeline_seconds import visits_of
from costmodel.problem import Problem
from costmodel.step import evaluate
from planner.timeline import timeline
from planner.values import Plan

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change to the plan and what it would do.

    relative: step time with it / now - 1; None when it does not fit or breaks a rule, then
    ``reason`` says which.
    """

    what: str
    step_time_s: float | None
    relative: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The stage that finishes last and the one whose work per micro-batch is largest there."""

    pipeline: int
    last_stage: int
    slowest_stage: int
    pool: str
    utilisation: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Answer to "why this plan"; ``timeline`` is a text drawing of the slowest pipeline."""

    plan: Plan
    bottleneck: Bottleneck | None
    breakdown: dict[str, float]
    changes: tuple[Change, ...]
    timeline: str
    summary: tuple[str, ...]

    def document(self) -> Document:
        """The explanation as plain data (schema ``haplan.explanation/v1``)."""
        return {
            "schema": "haplan.explanation/v1",
            "plan": self.plan.document(),
            "bottleneck": asdict(self.bottleneck) if self.bottleneck else None,
            "breakdown": self.breakdown,
            "changes": [asdict(change) for change in self.changes],
            "timeline": self.timeline,
            "summary": list(self.summary),
        }


def explain(plan: Plan) -> Explanation:
    """What limits the plan and what would change it. An infeasible plan explains its shortfall."""
    if plan.layout is None or plan.evaluation is None:
        return Explanation(
            plan=plan,
            bottleneck=None,
            breakdown={},
            changes=(),
            timeline="",
            summary=_shortfall_summary(plan),
        )
    bottleneck = find_bottleneck(plan.evaluation)
    changes = tuple(
        _judged(plan.problem, plan.evaluation.step_time_s, what, layout)
        for what, layout in _variants(plan.problem, plan.layout, bottleneck)
    )
    ordered = sorted(changes, key=lambda c: (c.relative is None, c.relative or 0.0, c.what))
    return Explanation(
        plan=plan,
        bottleneck=bottleneck,
        breakdown=dict(plan.evaluation.breakdown),
        changes=tuple(ordered),
        timeline=timeline(plan.problem, plan.layout, bottleneck.pipeline),
        summary=_summary(plan, plan.evaluation, bottleneck),
    )


def find_bottleneck(evaluation: Evaluation) -> Bottleneck:
    """The stage that is done last, and the stage of that pipeline with most work."""
    d, last = evaluation.last
    stages = evaluation.stages[d]
    work = [s.time.forward_s + s.time.backward_s + s.time.sharded_weights_s for s in stages]
    slowest = max(range(len(work)), key=lambda i: (work[i], -i))
    microbatches = evaluation.layout.pipelines[d].microbatches
    visits = visits_of(evaluation.layout.schedule, len(stages), microbatches)
    busy = visits * work[slowest] / evaluation.step_time_s
    tail = stages[last].time.sync_s + stages[last].time.wait_s
    if tail > 0.1 * evaluation.step_time_s:
        reason = "gradient synchronisation after the last backward"
    elif busy > 0.9:
        reason = "work of its slowest stage"
    else:
        reason = "filling and draining the pipeline"
    return Bottleneck(
        pipeline=d,
        last_stage=last,
        slowest_stage=slowest,
        pool=stages[slowest].stage.option.pool,
        utilisation=busy,
        reason=reason,
    )


def _judged(problem: Problem, now_s: float, what: str, layout: Layout) -> Change:
    broken = violations(problem, layout)
    if broken:
        return Change(what=what, step_time_s=None, relative=None, reason=broken[0].rule)
    try:
        evaluation = evaluate(problem, layout)
    except InputError as error:
        return Change(what=what, step_time_s=None, relative=None, reason=str(error))
    if not evaluation.fits:
        lacking = f"lacks {evaluation.missing_bytes / 2**30:.1f} GiB on a chip"
        return Change(what=what, step_time_s=None, relative=None, reason=lacking)
    step_s = evaluation.step_time_s
    return Change(what=what, step_time_s=step_s, relative=step_s / now_s - 1.0)


def _variants(
    problem: Problem, layout: Layout, bottleneck: Bottleneck
) -> Iterator[tuple[str, Layout]]:
    d = bottleneck.pipeline
    yield from _layer_moves(layout, d, bottleneck.slowest_stage)
    yield from _other_modes(layout, d, bottleneck.slowest_stage)
    yield from _other_micro_batches(problem, layout)
    yield from _other_tensor_parallel(layout, d, bottleneck.slowest_stage)
    yield from _without_pools(problem, layout)


def _with_stages(layout: Layout, d: int, stages: tuple[Stage, ...]) -> Layout:
    """The layout with other stages in pipeline d and in those that are shaped like it."""
    old = layout.pipelines[d].stages
    pipelines = tuple(replace(p, stages=stages) if p.stages == old else p for p in layout.pipelines)
    return replace(layout, pipelines=pipelines)


def _layer_moves(layout: Layout, d: int, i: int) -> Iterator[tuple[str, Layout]]:
    stages = layout.pipelines[d].stages
    for j in (i - 1, i + 1):
        if not 0 <= j < len(stages):
            continue
        for giver, taker in ((i, j), (j, i)):
            moved = _move_layer(stages, giver, taker)
            if moved is not None:
                what = f"pipeline {d}: one layer from stage {giver} to stage {taker}"
                yield what, _with_stages(layout, d, moved)


def _move_layer(stages: tuple[Stage, ...], giver: int, taker: int) -> tuple[Stage, ...] | None:
    """The stages with one layer handed to a neighbour; None when the giver has only one."""
    (a, b), (c, e) = stages[giver].chunks[0], stages[taker].chunks[0]
    if b - a < 2:
        return None
    forward = giver < taker
    changed = {
        giver: (a, b - 1) if forward else (a + 1, b),
        taker: (c - 1, e) if forward else (c, e + 1),
    }
    return tuple(
        replace(stage, chunks=(changed[i], *stage.chunks[1:])) if i in changed else stage
        for i, stage in enumerate(stages)
    )


def _other_modes(layout: Layout, d: int, i: int) -> Iterator[tuple[str, Layout]]:
    stages = layout.pipelines[d].stages
    option = stages[i].option
    for mode in RECOMPUTE_MODES:
        if mode != option.recompute:
            other = replace(stages[i], option=replace(option, recompute=mode))
            edited = (*stages[:i], other, *stages[i + 1 :])
            yield f"pipeline {d}, stage {i}: recompute {mode}", _with_stages(layout, d, edited)
    for zero in (0, 1, 2, 3):
        if zero != option.zero:
            yield f"ZeRO {zero} on all stages", _with_zero(layout, zero)


def _with_zero(layout: Layout, zero: int) -> Layout:
    pipelines = tuple(
        replace(p, stages=tuple(replace(s, option=replace(s.option, zero=zero)) for s in p.stages))
        for p in layout.pipelines
    )
    return replace(layout, pipelines=pipelines)


def _scaled(pipeline: Pipeline, up: int, down: int) -> Pipeline | None:
    """Micro-batches ``up / down`` times as large, as many fewer; None when it does not divide."""
    if pipeline.microbatches * down % up:
        return None
    sizes = [stage.option.micro_batch_size * up for stage in pipeline.stages]
    if any(size % down for size in sizes):
        return None
    stages = tuple(
        replace(stage, option=replace(stage.option, micro_batch_size=size // down))
        for stage, size in zip(pipeline.stages, sizes, strict=True)
    )
    return replace(pipeline, stages=stages, microbatches=pipeline.microbatches * down // up)


def _other_micro_batches(problem: Problem, layout: Layout) -> Iterator[tuple[str, Layout]]:
    del problem
    for what, up, down in (("twice as large", 2, 1), ("half as large", 1, 2)):
        scaled = [_scaled(p, up, down) for p in layout.pipelines]
        kept = tuple(p for p in scaled if p is not None)
        if len(kept) == len(scaled):
            yield f"micro-batches {what}", replace(layout, pipelines=kept)


def _other_tensor_parallel(layout: Layout, d: int, i: int) -> Iterator[tuple[str, Layout]]:
    """The slowest stage with half or twice the tensor parallelism on the same chips."""
    stages = layout.pipelines[d].stages
    option = stages[i].option
    for other in _reshaped(option):
        edited = (*stages[:i], replace(stages[i], option=other), *stages[i + 1 :])
        what = f"pipeline {d}, stage {i}: tp {other.tp}, replicas {other.replicas}"
        yield what, _with_stages(layout, d, edited)


def _reshaped(option: StageOption) -> Iterator[StageOption]:
    if option.tp % 2 == 0 and option.micro_batch_size % 2 == 0:
        yield replace(
            option,
            tp=option.tp // 2,
            replicas=option.replicas * 2,
            micro_batch_size=option.micro_batch_size // 2,
            sequence_parallel=option.tp > 2,
        )
    if option.replicas % 2 == 0:
        yield replace(
            option,
            tp=option.tp * 2,
            replicas=option.replicas // 2,
            micro_batch_size=option.micro_batch_size * 2,
            sequence_parallel=True,
        )


def _without_pools(problem: Problem, layout: Layout) -> Iterator[tuple[str, Layout]]:
    """The layout without the pipelines that touch a pool, their micro-batches dealt to the rest."""
    for pool in problem.cluster.pools:
        kept = tuple(p for p in layout.pipelines if p.chips(pool.name) == 0)
        if not kept or len(kept) == len(layout.pipelines):
            continue
        dealt = _dealt(
            kept, layout.samples - sum(p.count * p.microbatches * p.samples for p in kept)
        )
        if dealt is not None:
            yield f"without pool {pool.name}", replace(layout, pipelines=dealt)


def _dealt(kept: tuple[Pipeline, ...], samples: int) -> tuple[Pipeline, ...] | None:
    """The pipelines with so many more sequences, in proportion; None when it does not come out."""
    total = sum(p.count * p.microbatches * p.samples for p in kept)
    grown = [p.microbatches * samples // total for p in kept]
    left = samples - sum(p.count * n * p.samples for p, n in zip(kept, grown, strict=True))
    result: list[Pipeline] = []
    for p, n in zip(kept, grown, strict=True):
        more = min(p.count, left // p.samples)
        left -= more * p.samples
        parts = ((more, p.microbatches + n + 1), (p.count - more, p.microbatches + n))
        result += [replace(p, count=count, microbatches=m) for count, m in parts if count]
    return tuple(result) if left == 0 else None


def _summary(plan: Plan, evaluation: Evaluation, bottleneck: Bottleneck) -> tuple[str, ...]:
    share = 100.0 * bottleneck.utilisation
    stage = f"stage {bottleneck.slowest_stage} on pool {bottleneck.pool}"
    lines = [
        f"Pipeline {bottleneck.pipeline} ends last; what limits it is {bottleneck.reason}.",
        f"Its {stage} has most work per micro-batch and is busy {share:.0f} % of the step.",
    ]
    parts = sorted(evaluation.breakdown.items(), key=lambda part: -part[1])[:3]
    named = ", ".join(f"{name} {100 * s / evaluation.step_time_s:.0f} %" for name, s in parts)
    lines.append(f"Most of the step goes to {named}.")
    if plan.bound is not None:
        lines.append(
            f"No layout of the declared space can take less than {plan.bound.step_time_s:.4g} s, "
            f"so the best one is at most {1 + plan.bound.gap:.2f} x as fast."
        )
    return tuple(lines)


def _shortfall_summary(plan: Plan) -> tuple[str, ...]:
    shortfall = plan.shortfall
    if shortfall is None:
        return ("The search ended before it knew a layout that fits.",)
    lines = [f"No layout fits; the binding constraint is {shortfall.constraint}."]
    if shortfall.missing_bytes > 0:
        lines.append(
            f"The nearest miss lacks {shortfall.missing_bytes / 2**30:.2f} GiB per chip "
            f"of pool {shortfall.pool}."
        )
    return (*lines, *(f"It would fit with {change}." for change in shortfall.changes))
