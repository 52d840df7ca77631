"""The answer of ``validate``: a plain document with typed fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypedDict

from costmodel.errors import Violation
from runner.reduction import Reduced
from runner.task import Outcome

LOSS_TOLERANCE = 1e-9
GRADIENT_TOLERANCE = 1e-9
WEIGHT_TOLERANCE = 1e-9

GroupKey = tuple[str, tuple[int, ...]]


class Traffic(TypedDict):
    """Payload bytes by kind of process group."""

    predicted: dict[str, int]
    observed: dict[str, int]


class Report(TypedDict):
    """What the execution of a reduced plan showed.

    ok: nothing differs. ranks: processes. loss_max_abs_diff: of a sequence's mean token loss.
    grad_max_rel_diff: of a gradient element, relative to its parameter's largest.
    weight_max_rel_diff: the same of the weights after the optimizer step.
    metadata_bytes: sizes that ranks tell each other before routed tokens travel.
    reductions, not_covered: how the plan was made small, and what that leaves unproven.
    differences, violations: why the verdict is not ok.
    """

    ok: bool
    ranks: int
    loss_max_abs_diff: float
    grad_max_rel_diff: float
    weight_max_rel_diff: float
    traffic_bytes: Traffic
    metadata_bytes: int
    reductions: list[str]
    not_covered: list[str]
    differences: list[str]
    violations: list[str]
    elapsed_s: float


def rejected(violations: Sequence[Violation]) -> Report:
    """A plan that contradicts itself; nothing was executed."""
    return Report(
        ok=False,
        ranks=0,
        loss_max_abs_diff=0.0,
        grad_max_rel_diff=0.0,
        weight_max_rel_diff=0.0,
        traffic_bytes=Traffic(predicted={}, observed={}),
        metadata_bytes=0,
        reductions=[],
        not_covered=[],
        differences=[str(violation) for violation in violations],
        violations=[str(violation) for violation in violations],
        elapsed_s=0.0,
    )


def executed(
    reduced: Reduced, ranks: int, outcome: Outcome, predicted: Mapping[GroupKey, int]
) -> Report:
    """The verdict on an execution."""
    observed = {key: n for key, n in outcome.observed.items() if key[0] != "metadata"}
    differences = [*_numbers(outcome), *_traffic(predicted, observed)]
    return Report(
        ok=not differences,
        ranks=ranks,
        loss_max_abs_diff=outcome.loss_max_abs_diff,
        grad_max_rel_diff=outcome.grad_max_rel_diff,
        weight_max_rel_diff=outcome.weight_max_rel_diff,
        traffic_bytes=Traffic(predicted=_by_kind(predicted), observed=_by_kind(observed)),
        metadata_bytes=sum(n for key, n in outcome.observed.items() if key[0] == "metadata"),
        reductions=list(reduced.reductions),
        not_covered=list(reduced.not_covered),
        differences=differences,
        violations=[],
        elapsed_s=outcome.elapsed_s,
    )


def _numbers(outcome: Outcome) -> list[str]:
    found: list[str] = []
    if not outcome.loss_max_abs_diff <= LOSS_TOLERANCE:
        found.append(f"a sequence's loss differs by {outcome.loss_max_abs_diff:.3g}")
    if not outcome.grad_max_rel_diff <= GRADIENT_TOLERANCE:
        worst = outcome.worst_parameter
        found.append(f"the gradient of {worst} differs by {outcome.grad_max_rel_diff:.3g}")
    if not outcome.weight_max_rel_diff <= WEIGHT_TOLERANCE:
        found.append(f"updated weights differ by {outcome.weight_max_rel_diff:.3g}")
    if outcome.uncovered:
        found.append(f"no rank has the gradient of {', '.join(outcome.uncovered)}")
    return found


def _traffic(predicted: Mapping[GroupKey, int], observed: Mapping[GroupKey, int]) -> list[str]:
    return [
        f"{kind} traffic of ranks {', '.join(map(str, ranks))}: "
        f"{observed.get((kind, ranks), 0)} bytes, predicted {predicted.get((kind, ranks), 0)}"
        for kind, ranks in sorted({*predicted, *observed})
        if observed.get((kind, ranks), 0) != predicted.get((kind, ranks), 0)
    ]


def _by_kind(traffic: Mapping[GroupKey, int]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for (kind, _), size in traffic.items():
        total[kind] += size
    return dict(sorted(total.items()))
