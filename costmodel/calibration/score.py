"""Predicts measured cases and compares: one result a case, scored or with the reason why not."""

from collections.abc import Iterable
from dataclasses import dataclass

from costmodel.calibration.case import QUALITIES, Case, UnscorableError
from costmodel.calibration.convention import Convention
from costmodel.calibration.memory_seen import constants_of, figure, seen
from costmodel.calibration.prepare import Prepared, prepare
from costmodel.errors import InputError
from costmodel.evaluation import Evaluation
from costmodel.software.values import Efficiency

METRICS = ("time", "peak", "static")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A predicted and a measured value in the same unit, seconds or bytes."""

    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Signed relative error: predicted / measured - 1."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A case that was predicted. pairs: by metric, where the case measured it."""

    case: Case
    prepared: Prepared
    pairs: dict[str, Pair]
    assumptions: tuple[str, ...]
    evaluation: Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A case that was not predicted, and why."""

    case: Case
    reason: str


def score(case: Case, efficiency: Efficiency | None = None) -> Scored | Skipped:
    """Predicts one case under the software profile of its stack, or under other constants."""
    try:
        return scored(case, prepare(case), efficiency)
    except UnscorableError as reason:
        return Skipped(case=case, reason=str(reason))
    except InputError as error:
        return Skipped(case=case, reason=str(error.violations[0]))


def scored(case: Case, prepared: Prepared, efficiency: Efficiency | None = None) -> Scored:
    """Predicts one prepared case. Raises UnscorableError if nothing can be compared."""
    evaluations = prepared.evaluations(efficiency or prepared.problem.efficiency)
    pairs = _pairs(prepared, evaluations)
    if not pairs:
        raise UnscorableError("nothing measured that is predicted")
    return Scored(
        case=case,
        prepared=prepared,
        pairs=pairs,
        assumptions=prepared.assumptions,
        evaluation=max(evaluations, key=lambda found: found[1])[0],
    )


def score_all(
    cases: Iterable[Case], *, min_quality: str = "B", efficiency: Efficiency | None = None
) -> tuple[list[Scored], list[Skipped]]:
    """Scores every case of at least this quality; the others are skipped by name.

    efficiency: constants for all of them, else those of each case's stack.
    """
    good = QUALITIES[: QUALITIES.index(min_quality) + 1]
    found: list[Scored] = []
    skipped: list[Skipped] = []
    for case in cases:
        if case.quality not in good:
            skipped.append(Skipped(case=case, reason=f"quality {case.quality}"))
            continue
        result = score(case, efficiency)
        if isinstance(result, Scored):
            found.append(result)
        else:
            skipped.append(result)
    return found, skipped


def _pairs(prepared: Prepared, evaluations: list[tuple[Evaluation, float]]) -> dict[str, Pair]:
    case, how = prepared.case, prepared.how
    measured = {
        "time": prepared.step_s,
        "peak": _bytes(case, "peak_memory_bytes", how),
        "static": _bytes(case, "static_memory_bytes", how),
    }
    memory = seen(prepared, evaluations)
    predicted = {
        "time": sum(share * evaluation.step_time_s for evaluation, share in evaluations),
        "peak": figure(memory, constants_of(how)),
        "static": memory.static,
    }
    return {
        name: Pair(predicted=predicted[name], measured=value)
        for name, value in measured.items()
        if value
    }


def _bytes(case: Case, key: str, how: Convention) -> float | None:
    value = case.measured.number(key)
    return None if value is None else value * how.byte_factor
