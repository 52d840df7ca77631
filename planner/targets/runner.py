"""The executor behind ``haplan validate``; it refuses the same layouts by the same functions."""

from collections.abc import Callable, Iterator

from costmodel.errors import Violation
from costmodel.holders import segments
from costmodel.layout.values import NO_OFFLOAD, Layout
from costmodel.problem import Problem
from planner.targets.target import Rule, Target

ZERO_BUBBLE = "zero-bubble"
EXECUTED_SCHEDULES = ("1f1b", "gpipe", "interleaved", ZERO_BUBBLE)


def _known_schedule(layout: Layout) -> Iterator[Violation]:
    if layout.schedule.kind not in EXECUTED_SCHEDULES:
        yield Violation(
            field="/schedule/kind",
            value=layout.schedule.kind,
            rule=f"must be {', '.join(EXECUTED_SCHEDULES)} to be executed",
            fix="plan with the schedule 1f1b to validate it",
        )


def _chunks_unsharded(layout: Layout) -> Iterator[Violation]:
    sharding = max((s.option.zero for p in layout.pipelines for s in p.stages), default=0)
    if layout.schedule.virtual_stages > 1 and sharding > 1:
        yield Violation(
            field="/schedule/virtual_stages",
            value=layout.schedule.virtual_stages,
            rule="ZeRO 2 and 3 with several chunks per stage are not executed",
            fix="plan with zero at most 1 or with the schedule 1f1b to validate it",
        )


def _weights_in_step(layout: Layout) -> Iterator[Violation]:
    """ZeRO 3 gathers weights at every pass, so the ranks of a group must pass in step."""
    if all(stage.option.zero < 3 for p in layout.pipelines for stage in p.stages):
        return
    for segment in segments(layout):
        orders: set[tuple[int, int, int]] = set()
        for p, s in segment.holders:
            pipeline = layout.pipelines[p]
            if pipeline.stages[s].option.zero == 3:
                put_off = s if layout.schedule.kind == ZERO_BUBBLE else 0
                orders.add((len(pipeline.stages) - s, put_off, pipeline.microbatches))
        if len(orders) > 1:
            p, s = segment.holders[0]
            rule = "ZeRO 3 over stages that run their micro-batches in different orders"
            yield Violation(
                field=f"/pipelines/{p}/stages/{s}/zero",
                value=f"layers {segment.start} to {segment.stop}",
                rule=f"{rule} is not executed",
                fix="plan with zero at most 2, or with equal pipelines",
            )


def _on_chips(layout: Layout) -> Iterator[Violation]:
    for d, pipeline in enumerate(layout.pipelines):
        for i, stage in enumerate(pipeline.stages):
            if stage.option.offload != NO_OFFLOAD:
                yield Violation(
                    field=f"/pipelines/{d}/stages/{i}/offload",
                    value=stage.option.offload,
                    rule="is not executed: its processes have no other memory",
                    fix="write none to validate the plan",
                )


def layout_refusals(layout: Layout) -> Iterator[Violation]:
    """What the executor refuses of a layout, whatever the model."""
    yield from _on_chips(layout)
    yield from _known_schedule(layout)
    yield from _chunks_unsharded(layout)
    yield from _weights_in_step(layout)


def _rule(rule_id: str, sentence: str, refuses: Callable[[Layout], Iterator[Violation]]) -> Rule:
    def check(problem: Problem, layout: Layout) -> Iterator[Violation]:
        del problem
        yield from refuses(layout)

    return Rule(id=rule_id, sentence=sentence, check=check)


TARGET = Target(
    name="runner",
    title="the executor of haplan, torch on CPU processes",
    source="runner/",
    rules=(
        _rule(
            "schedule",
            "The schedule is 1f1b, gpipe, interleaved or zero-bubble.",
            _known_schedule,
        ),
        _rule("offload", "Nothing is kept in the host's memory.", _on_chips),
        _rule("chunks-unsharded", "Several chunks come with ZeRO 0 or 1.", _chunks_unsharded),
        _rule(
            "weights-in-step",
            "With ZeRO 3 stages that share a layer run their micro-batches in step.",
            _weights_in_step,
        ),
    ),
)
