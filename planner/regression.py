"""Whether plans got worse: two sets of results, case by case."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What became of one case."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    LOST = "lost"
    FOUND = "found"
    NEW = "new"
    MISSING = "missing"

    @property
    def passed(self) -> bool:
        """Whether it is no reason to complain."""
        return self not in (Verdict.SLOWER, Verdict.LOST, Verdict.MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What planning one case gave; no step time means that no layout fits."""

    step_time_s: float | None
    plan_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One case before and after. `relative` is after / before - 1, where both have a time."""

    name: str
    verdict: Verdict
    before_s: float | None
    after_s: float | None
    relative: float | None


def compare(
    before: Mapping[str, Result], after: Mapping[str, Result], *, threshold: float
) -> tuple[Comparison, ...]:
    """Every case of either set; slower means by more than `threshold`, a share of the old time."""
    names = [*after, *(name for name in before if name not in after)]
    return tuple(
        compare_case(name, before.get(name), after.get(name), threshold=threshold) for name in names
    )


def compare_case(
    name: str, before: Result | None, after: Result | None, *, threshold: float
) -> Comparison:
    """One case."""
    before_s = None if before is None else before.step_time_s
    after_s = None if after is None else after.step_time_s
    relative = None if before_s is None or after_s is None else after_s / before_s - 1
    if before is None:
        verdict = Verdict.NEW
    elif after is None:
        verdict = Verdict.MISSING
    elif relative is None:
        verdict = feasibility_verdict(before_s, after_s)
    else:
        verdict = speed_verdict(relative, threshold)
    return Comparison(
        name=name, verdict=verdict, before_s=before_s, after_s=after_s, relative=relative
    )


def feasibility_verdict(before_s: float | None, after_s: float | None) -> Verdict:
    """The verdict where one of the two has no step time."""
    if before_s is None and after_s is None:
        return Verdict.SAME
    return Verdict.FOUND if before_s is None else Verdict.LOST


def speed_verdict(relative: float, threshold: float) -> Verdict:
    """The verdict where both have a step time."""
    if relative > threshold:
        return Verdict.SLOWER
    return Verdict.FASTER if relative < -threshold else Verdict.SAME
