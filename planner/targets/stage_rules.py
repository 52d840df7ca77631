"""Rules on single stages: they clip the options of the space."""

from collections.abc import Callable, Iterator

from costmodel.errors import Violation
from costmodel.layout.rule_tools import alternatives, places
from costmodel.layout.values import Layout, StageOption
from costmodel.problem import Problem
from planner.targets.target import Keeps, Rule

Legal = Callable[[Problem, StageOption], bool]


def stage_rule(
    rule_id: str, sentence: str, field: str, keeps: Keeps, *, fix: str, rule: str = ""
) -> Rule:
    """A rule on ``field`` of every stage, kept by the options of which ``keeps`` is true."""
    text = rule or sentence[0].lower() + sentence[1:].rstrip(".")

    def check(problem: Problem, layout: Layout) -> Iterator[Violation]:
        for place in places(layout):
            if not keeps(problem, place.option):
                yield place.broken(field, text, fix)

    return Rule(id=rule_id, sentence=sentence, check=check, keeps=keeps)


def zero_in(*stages: int) -> Rule:
    """Which ZeRO stages there are."""
    return stage_rule(
        "zero",
        f"The ZeRO stage is {alternatives(stages)}.",
        "zero",
        lambda _, option: option.zero in stages,
        fix=f"write {alternatives(stages)}",
    )


def recompute_in(*modes: str) -> Rule:
    """Which recompute modes there are."""
    return stage_rule(
        "recompute",
        f"The recompute mode is {alternatives(modes)}.",
        "recompute",
        lambda _, option: option.recompute in modes,
        fix=f"write {alternatives(modes)}",
    )


def offload_in(*modes: str) -> Rule:
    """What can be kept in the host's memory."""
    return stage_rule(
        "offload",
        f"What is kept in the host's memory is {alternatives(modes)}.",
        "offload",
        lambda _, option: option.offload in modes,
        fix=f"write {alternatives(modes)}",
    )


def only_one(field: str, why: str) -> Rule:
    """A degree that has to be 1."""
    return stage_rule(
        f"no-{field}",
        f"{field} is 1: {why}.",
        field,
        lambda _, option: getattr(option, field) == 1,
        fix="write 1",
    )


def vendors(*names: str) -> Rule:
    """Whose chips it runs on."""

    def keeps(problem: Problem, option: StageOption) -> bool:
        return problem.cluster.pool(option.pool).chip.vendor in names

    fix = f"use a pool with chips of {alternatives(names)}"
    sentence = f"Chips come from {alternatives(names)}."
    return stage_rule("vendor", sentence, "pool", keeps, fix=fix)


SEQUENCE_PARALLEL_NEEDS_TP = stage_rule(
    "sequence-parallel-needs-tp",
    "Sequence parallelism needs tensor parallelism.",
    "sequence_parallel",
    lambda _, option: option.tp > 1 or not option.sequence_parallel,
    rule="must be false where tp is 1",
    fix="write false",
)

SEQUENCE_PARALLEL_WITH_TP = stage_rule(
    "sequence-parallel",
    "Tensor parallelism always comes with sequence parallelism.",
    "sequence_parallel",
    lambda _, option: option.tp == 1 or option.sequence_parallel,
    rule="must be true where tp is above 1",
    fix="write true, or use tp 1",
)

EXPERTS_NEED_SEQUENCE_PARALLEL = stage_rule(
    "experts-need-sequence-parallel",
    "Expert parallelism with tensor parallelism needs sequence parallelism.",
    "sequence_parallel",
    lambda _, option: option.ep == 1 or option.tp == 1 or option.sequence_parallel,
    rule="must be true where ep and tp are above 1",
    fix="write true",
)

CONTEXT_SPLITS = stage_rule(
    "context-splits",
    "A sequence is cut into 2 x cp parts of whole tokens.",
    "cp",
    lambda problem, option: option.cp == 1 or problem.job.sequence_length % (2 * option.cp) == 0,
    fix="use a smaller cp, or pad the sequence",
)

SEQUENCE_SPLITS = stage_rule(
    "sequence-splits",
    "With sequence parallelism tp x cp divides the sequence.",
    "tp",
    lambda problem, option: (
        not option.sequence_parallel or problem.job.sequence_length % (option.tp * option.cp) == 0
    ),
    fix="use a smaller tp, or pad the sequence",
)
