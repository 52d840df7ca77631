"""Errors on runs that the constants have not seen: whole stacks held out, or models of a stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from costmodel.calibration.accuracy import Row, layout_group
from costmodel.calibration.fit import Fitted, Near, Pooled, model_key, spreads
from costmodel.calibration.linear import step_seconds
from costmodel.calibration.prepare import TUNED_MFU, Prepared
from costmodel.calibration.widths import Miss, half_widths

FOLDS = 4
"""Parts that the models of a stack are split in; each is predicted from the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One prediction of a case that the constants have not seen; seconds.

    fitted: those constants. fold: of the stack's models that they have not seen; None if they have
    seen none of the stack's.
    """

    prepared: Prepared
    predicted_s: float
    fitted: Fitted
    fold: int | None = None

    @property
    def stack(self) -> str:
        """That of the case."""
        return self.prepared.case.stack

    @property
    def mfu(self) -> float:
        """The predicted utilisation: what an interval may depend on."""
        measured_s, mfu = self.prepared.step_s or 1.0, self.prepared.mfu or 0.0
        return mfu * measured_s / self.predicted_s

    @property
    def tuned(self) -> bool:
        """Whether it is predicted to be bound by the device."""
        return self.mfu >= TUNED_MFU

    @property
    def miss(self) -> Miss:
        """How far it was off."""
        ratio = (self.prepared.step_s or 1.0) / self.predicted_s
        return Miss(stack=self.stack, mfu=self.mfu, log_ratio=abs(log(ratio)), fold=self.fold)


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

    The prior and its spread are those of the other stacks, so that a fold has seen none of the
    cases it predicts. Stacks of one model are left out. near: each stack's cases near its own
    constants, where slopes are taken.
    """
    found: list[Held] = []
    between = spreads(pooled, near)
    for name, cases in stacks.items():
        models = sorted({model_key(case) for case in cases})
        prior = pooled.without(name).x if len(models) > 1 else None
        for fold in range(min(FOLDS, len(models))):
            if prior is not None:
                held = set(models[fold::FOLDS])
                seen = np.array([model_key(c) not in held for c in near[name].sample.cases])
                fitted = near[name].fitted(prior, between.without(name), seen)
                found += predicted([c for c in cases if model_key(c) in held], fitted, fold)
    return found


def predicted(cases: Sequence[Prepared], fitted: Fitted, fold: int | None = None) -> list[Held]:
    """The cases under these constants."""
    efficiency = fitted.efficiency
    return [
        Held(
            prepared=case,
            predicted_s=step_seconds(case, efficiency),
            fitted=fitted,
            fold=fold,
        )
        for case in cases
    ]


def rows_of(held: Sequence[Held]) -> list[Row]:
    """Rows for the figures. No run has a part in its own interval's width."""
    widths = half_widths([one.miss for one in held])
    return [_row(one, width) for one, width in zip(held, widths, strict=True)]


def _row(one: Held, half_width: float) -> Row:
    prepared, measured_s = one.prepared, one.prepared.step_s or 1.0
    return Row(
        id=prepared.case.id,
        stack=one.stack,
        group=layout_group(prepared.case),
        tuned=prepared.tuned,
        errors={"time": one.predicted_s / measured_s - 1.0},
        predicted_s=one.predicted_s,
        measured_s=measured_s,
        half_width=half_width,
        assumptions=prepared.assumptions,
    )
