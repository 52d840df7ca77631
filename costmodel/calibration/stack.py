"""Fits the constants of a user's own training stack to measured cases.

The fit is the one behind the bundled profiles (``costmodel.calibration.fit``), with the bundled
default as the prior: with few rows the constants stay near it, with many they follow the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from costmodel.calibration.case import Case, UnscorableError
from costmodel.calibration.fit import (
    Fitted,
    Sample,
    model_key,
    own_sample,
    own_weighing,
    solve,
    with_spreads,
)
from costmodel.calibration.linear import (
    FloatArray,
    Linear,
    Parameter,
    linearised,
    position,
    step_seconds,
)
from costmodel.calibration.parameters import PARAMETERS
from costmodel.calibration.prepare import Prepared, prepare
from costmodel.calibration.score import Skipped
from costmodel.efficiency import DEFAULT_EFFICIENCY, Efficiency
from costmodel.errors import InputError
from costmodel.software.read import spreads_between_stacks

FOLDS = 4
FEWEST_TO_HOLD_OUT = 8
"""Rows, of two models or more, from which some models are held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepErrors:
    """Of step times: median, mean and 90 % quantile of |predicted / measured - 1|, and the signed
    median."""

    n: int
    median: float
    mean: float
    p90: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFit:
    """A fitted stack. before, after: errors of all rows under the default and the fitted constants.
    held_out: of rows whose model the constants have not seen, None where there are too few."""

    fitted: Fitted
    rows: int
    used: int
    models: int
    stacks: tuple[str, ...]
    before: StepErrors
    after: StepErrors
    held_out: StepErrors | None
    skipped: tuple[Skipped, ...] = field(default=())


def usable(cases: Sequence[Case], stack: str) -> tuple[list[Prepared], list[Skipped]]:
    """The cases that measured a step time and can be predicted; a case without a stack has this
    one."""
    found: list[Prepared] = []
    skipped: list[Skipped] = []
    for case in cases:
        named = case if case.stack else replace(case, stack=stack)
        try:
            prepared = prepare(named)
        except UnscorableError as reason:
            skipped.append(Skipped(case=case, reason=str(reason)))
            continue
        except InputError as error:
            skipped.append(Skipped(case=case, reason=str(error.violations[0])))
            continue
        if prepared.step_s:
            found.append(prepared)
        else:
            skipped.append(Skipped(case=case, reason="no time or rate measured"))
    return found, skipped


def fit_stack(cases: Sequence[Prepared], skipped: Sequence[Skipped] = ()) -> StackFit:
    """The constants of these cases and how well they predict. cases: at least one."""
    models = sorted({model_key(case) for case in cases})
    chosen = own_sample(cases)
    fitted, near = constants_of(chosen)
    return StackFit(
        fitted=fitted,
        rows=len(cases),
        used=len(chosen.cases),
        models=len(models),
        stacks=tuple(sorted({case.case.stack for case in cases})),
        before=step_errors(cases, DEFAULT_EFFICIENCY),
        after=step_errors(cases, fitted.efficiency),
        held_out=_held_out(cases, models, chosen, near),
        skipped=tuple(skipped),
    )


def _parameters() -> tuple[Parameter, ...]:
    """With the spreads between the bundled stacks."""
    between = spreads_between_stacks()
    return with_spreads(np.array([between[parameter.name] for parameter in PARAMETERS]))


def constants_of(one: Sample) -> tuple[Fitted, Linear]:
    """The constants of a sample, with the bundled default as the prior, and its cases near them."""
    prior = position(DEFAULT_EFFICIENCY, PARAMETERS)
    near = linearised(one.cases, DEFAULT_EFFICIENCY, PARAMETERS)
    first = solve([(near, one.weighing)], prior, _parameters())
    near = linearised(one.cases, first.efficiency, PARAMETERS)
    return solve([(near, one.weighing)], prior, _parameters()), near


def step_errors(cases: Sequence[Prepared], efficiency: Efficiency) -> StepErrors:
    """Errors of the cases' step times under these constants."""
    return _errors(_log_ratios(cases, efficiency))


def _log_ratios(cases: Sequence[Prepared], efficiency: Efficiency) -> FloatArray:
    return np.log([step_seconds(case, efficiency) / (case.step_s or 1.0) for case in cases])


def _errors(log_ratio: FloatArray) -> StepErrors:
    signed = np.expm1(log_ratio)
    absolute = np.abs(signed)
    return StepErrors(
        n=len(signed),
        median=float(np.median(absolute)),
        mean=float(absolute.mean()),
        p90=float(np.quantile(absolute, 0.9)),
        bias=float(np.median(signed)),
    )


def _held_out(
    cases: Sequence[Prepared], models: Sequence[str], one: Sample, near: Linear
) -> StepErrors | None:
    """Each part of the models predicted by constants fitted to the others."""
    if len(models) < 2 or len(cases) < FEWEST_TO_HOLD_OUT:
        return None
    ratios: list[FloatArray] = []
    prior = position(DEFAULT_EFFICIENCY, PARAMETERS)
    for fold in range(min(FOLDS, len(models))):
        held = set(models[fold::FOLDS])
        kept = np.array([model_key(case) not in held for case in one.cases])
        seen = [case for case, keep in zip(one.cases, kept, strict=True) if keep]
        fitted = solve([(near.rows(kept), own_weighing(seen))], prior, _parameters())
        unseen = [case for case in cases if model_key(case) in held]
        ratios.append(_log_ratios(unseen, fitted.efficiency))
    return _errors(np.concatenate(ratios))


def moved_constants(fitted: Fitted, *, by: float) -> Mapping[str, tuple[float, float]]:
    """Constants that differ from the default by more than a share, with the deviation of their
    logarithms."""
    pairs = zip(PARAMETERS, fitted.deviation, strict=True)
    efficiency = fitted.efficiency
    return {
        p.name: (getattr(efficiency, p.name), float(deviation))
        for p, deviation in pairs
        if abs(getattr(efficiency, p.name) / getattr(DEFAULT_EFFICIENCY, p.name) - 1.0) > by
    }
