"""What a user fixes: rules of their own, beside those of the target."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from costmodel.errors import Violation
from costmodel.layout.rule_tools import alternatives
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.targets.layout_rules import same
from planner.targets.stage_rules import stage_rule
from planner.targets.target import Rule, Shape, Target

DEGREES = ("tp", "cp", "ep", "etp", "replicas", "micro_batch_size", "zero", "recompute")
"""Fields of stage options that can be pinned."""

Values = frozenset[int] | frozenset[str]


def _nothing() -> Mapping[str, Values]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """degrees: allowed values by field of ``DEGREES``. stages: numbers of stages of a pipeline.
    chunks: runs of layers on each stage (Megatron's virtual pipeline stages).

    pool_order: every pipeline visits its pools in this order. equal_tp: one tp for all stages.
    templates: largest number of different pipelines.
    """

    degrees: Mapping[str, Values] = field(default_factory=_nothing)
    stages: frozenset[int] = frozenset()
    chunks: frozenset[int] = frozenset()
    pool_order: tuple[str, ...] = ()
    equal_tp: bool = False
    templates: int | None = None


NO_PINS = Pins()


def pinned(target: Target, pins: Pins) -> Target:
    """The target with the pins among its rules."""
    return replace(target, rules=(*target.rules, *_rules(pins)))


def _rules(pins: Pins) -> Iterator[Rule]:
    for name, values in pins.degrees.items():
        yield _degree(name, values)
    if pins.equal_tp:
        yield replace(same("tp"), id="pin.equal-tp")
    if pins.stages:
        yield _depth(pins.stages)
    if pins.chunks:
        yield _chunks(pins.chunks)
    if pins.pool_order:
        yield _order(pins.pool_order)
    if pins.templates is not None:
        yield _templates(pins.templates)


def _degree(name: str, values: Values) -> Rule:
    listed = alternatives(sorted(values, key=str))
    return stage_rule(
        f"pin.{name}",
        f"{name} is {listed}, as it was pinned.",
        name,
        lambda _, option: getattr(option, name) in values,
        fix=f"write {listed}",
    )


def _depth(depths: frozenset[int]) -> Rule:
    listed = alternatives(sorted(depths))

    def check(problem: Problem, layout: Layout) -> Iterator[Violation]:
        del problem
        for d, pipeline in enumerate(layout.pipelines):
            if len(pipeline.stages) not in depths:
                yield Violation(
                    field=f"/pipelines/{d}/stages",
                    value=len(pipeline.stages),
                    rule=f"must be {listed} stages, as it was pinned",
                    fix=f"use {listed}",
                )

    sentence = f"A pipeline has {listed} stages, as it was pinned."
    return Rule(id="pin.stages", sentence=sentence, check=check, shape=Shape(depths=depths))


def _chunks(numbers: frozenset[int]) -> Rule:
    listed = alternatives(sorted(numbers))

    def check(problem: Problem, layout: Layout) -> Iterator[Violation]:
        del problem
        if layout.schedule.virtual_stages not in numbers:
            yield Violation(
                field="/schedule/virtual_stages",
                value=layout.schedule.virtual_stages,
                rule=f"must be {listed} chunks a stage, as it was pinned",
                fix=f"use {listed}",
            )

    sentence = f"A stage has {listed} chunks of layers, as it was pinned."
    return Rule(id="pin.vp", sentence=sentence, check=check, shape=Shape(chunks=numbers))


def _order(order: tuple[str, ...]) -> Rule:
    place = {name: k for k, name in enumerate(order)}

    def check(problem: Problem, layout: Layout) -> Iterator[Violation]:
        del problem
        for d, pipeline in enumerate(layout.pipelines):
            pools = [stage.option.pool for stage in pipeline.stages]
            visited = [place.get(pool, -1) for pool in pools]
            if -1 in visited or visited != sorted(visited):
                yield Violation(
                    field=f"/pipelines/{d}/stages",
                    value=pools,
                    rule=f"must visit pools in the order {', '.join(order)}",
                    fix="reorder the stages",
                )

    sentence = f"Pipelines visit pools in the order {', '.join(order)}, as it was pinned."
    return Rule(id="pin.pool-order", sentence=sentence, check=check, shape=Shape(pool_order=order))


def _templates(most: int) -> Rule:
    def check(problem: Problem, layout: Layout) -> Iterator[Violation]:
        del problem
        found = len({pipeline.stages for pipeline in layout.pipelines})
        if found > most:
            yield Violation(
                field="/pipelines",
                value=found,
                rule=f"must be at most {most} different pipelines, as it was pinned",
                fix="use fewer shapes",
            )

    sentence = f"There are at most {most} different pipelines, as it was pinned."
    return Rule(id="pin.templates", sentence=sentence, check=check, shape=Shape(templates=most))
