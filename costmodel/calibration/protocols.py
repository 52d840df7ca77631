"""Errors on runs that the constants have not seen: whole stacks held out, or models of a stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from costmodel.calibration.accuracy import Row, layout_group
from costmodel.calibration.fit import Fitted, Near, Pooled, model_key
from costmodel.calibration.linear import step_seconds
from costmodel.calibration.prepare import TUNED_MFU, Prepared

FOLDS = 4
"""Parts that the models of a stack are split in; each is predicted from the others."""

COVERAGE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One prediction of a case that the constants have not seen; seconds."""

    prepared: Prepared
    predicted_s: float

    @property
    def tuned(self) -> bool:
        """Whether it is predicted to be bound by the device: what an interval may depend on."""
        measured_s, mfu = self.prepared.step_s or 1.0, self.prepared.mfu or 0.0
        return mfu * measured_s / self.predicted_s >= TUNED_MFU

    @property
    def log_ratio(self) -> float:
        """|ln(measured / predicted)|."""
        return abs(float(np.log((self.prepared.step_s or 1.0) / self.predicted_s)))


def unknown_stack(stacks: Mapping[str, Sequence[Prepared]], pooled: Pooled) -> list[Held]:
    """Every stack predicted by the constants fitted to the others."""
    found: list[Held] = []
    for name, cases in stacks.items():
        found += predicted(cases, pooled.without(name))
    return found


def known_stack(
    stacks: Mapping[str, Sequence[Prepared]], pooled: Pooled, near: Mapping[str, Near]
) -> list[Held]:
    """Each fourth of a stack's models predicted by constants fitted to its other models.

    The prior is the fit to the other stacks, so that a fold has seen none of the cases it
    predicts. Stacks of one model are left out. near: each stack's cases near its own constants,
    where slopes are taken.
    """
    found: list[Held] = []
    for name, cases in stacks.items():
        models = sorted({model_key(case) for case in cases})
        prior = pooled.without(name).x if len(models) > 1 else None
        for fold in range(min(FOLDS, len(models))):
            if prior is not None:
                held = set(models[fold::FOLDS])
                seen = np.array([model_key(c) not in held for c in near[name].sample.cases])
                fitted = near[name].fitted(prior, seen)
                found += predicted([c for c in cases if model_key(c) in held], fitted)
    return found


def predicted(cases: Sequence[Prepared], fitted: Fitted) -> list[Held]:
    """The cases under these constants."""
    efficiency = fitted.efficiency
    return [Held(prepared=case, predicted_s=step_seconds(case, efficiency)) for case in cases]


def quantile(values: Sequence[float]) -> float:
    """The conformal 90 % quantile: the ceil(0.9 (n + 1))-th smallest, at most the largest."""
    ordered = sorted(values)
    return ordered[min(len(ordered), ceil(COVERAGE * (len(ordered) + 1))) - 1]


def half_widths(held: Sequence[Held]) -> dict[bool, float]:
    """Relative half-width of the interval for rows predicted tuned (True) or not (False)."""
    widths: dict[bool, float] = {}
    for tuned in (True, False):
        values = [one.log_ratio for one in held if one.tuned is tuned]
        widths[tuned] = float(np.exp(quantile(values)) - 1.0) if values else 1.0
    return widths


def rows_of(held: Sequence[Held]) -> list[Row]:
    """Rows for the figures; each stack's interval is calibrated on the other stacks."""
    widths = {
        stack: half_widths([one for one in held if one.prepared.case.stack != stack])
        for stack in {one.prepared.case.stack for one in held}
    }
    return [
        Row(
            id=one.prepared.case.id,
            stack=one.prepared.case.stack,
            group=layout_group(one.prepared.case),
            tuned=one.prepared.tuned,
            errors={"time": one.predicted_s / (one.prepared.step_s or 1.0) - 1.0},
            predicted_s=one.predicted_s,
            measured_s=one.prepared.step_s or 1.0,
            half_width=widths[one.prepared.case.stack][one.tuned],
            assumptions=one.prepared.assumptions,
        )
        for one in held
    ]
