"""Fits the constants of the formulas to measured step times, by least squares with priors.

    python -m costmodel.calibration.fit CASES.jsonl... [--write]

Writes ``cluster_profiles/software/*.yaml``: the default profile from all stacks, each stack's own
from its rows, with the default as the prior. Deterministic; the two protocols by which the errors
are reported are in ``costmodel.calibration.protocols``.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from costmodel.calibration.case import Case, UnscorableError
from costmodel.calibration.linear import (
    FloatArray,
    Linear,
    Parameter,
    linearised,
    moved,
    position,
)
from costmodel.calibration.parameters import PARAMETERS
from costmodel.calibration.prepare import Prepared, prepare
from costmodel.calibration.read import read_cases
from costmodel.efficiency import DEFAULT_EFFICIENCY, Efficiency
from costmodel.errors import InputError

TUNED_SIGMA, UNTUNED_SIGMA = 0.06, 0.60
"""Standard deviations of ln(predicted / measured) that the fit expects; small steps depend on much
that a case does not state."""

MODEL_ROWS = 4
"""Rows that one model of a stack counts as at most: they are alike."""

STACK_ROWS, OWN_ROWS = 80, 300
"""Rows of a stack that the pooled fit and its own use, evenly spaced in the file."""

MODEL_SHARED = 0.25
"""Deviation that the residuals of one model of a stack share, over what each has of its own."""

OWN_UNTUNED_SIGMA = 1.0
"""``UNTUNED_SIGMA`` of a stack's own fit: one stalled cluster may hold most of its untuned runs."""

RELINEARISATIONS, OWN_RELINEARISATIONS = 3, 2

SPREAD_ROUNDS = 8
"""Times that the spreads between stacks and the stacks' own fits follow from each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """How much residuals count. weight: one over the standard deviation of each, (N,).

    model: which model each is of, (N,). shared: deviation that a model's residuals have in common,
    over their own: residuals ``s (e + shared u)`` with e of each row and u of each model have the
    covariance ``s^2 (1 + shared^2 1 1')`` in a model, and are made independent.
    """

    weight: FloatArray
    model: NDArray[np.intp]
    shared: float = 0.0

    def of(self, residual: FloatArray) -> FloatArray:
        """Independent residuals of deviation one, (N,)."""
        own = self.weight * residual
        if not self.shared:
            return own
        count = np.bincount(self.model)
        mean = np.bincount(self.model, own) / np.maximum(count, 1)
        taken = 1.0 - 1.0 / np.sqrt(1.0 + self.shared**2 * count)
        return own - (taken * mean)[self.model]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cases of one stack that a fit uses, and how much each counts."""

    cases: tuple[Prepared, ...]
    weighing: Weighing


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """x of the constants, and the standard deviation that data and prior leave it."""

    x: FloatArray
    deviation: FloatArray
    parameters: tuple[Parameter, ...] = PARAMETERS

    @property
    def efficiency(self) -> Efficiency:
        """The constants."""
        return moved(DEFAULT_EFFICIENCY, self.parameters, self.x)


def model_key(prepared: Prepared) -> str:
    """What makes two cases the same model."""
    get = prepared.case.model.values.get
    return repr([get(key) for key in ("layers", "hidden", "ffn_hidden", "experts", "heads")])


def timed_cases(cases: Iterable[Case]) -> dict[str, list[Prepared]]:
    """By stack, the cases that can be predicted and that measured a time.

    Cases without a stack (the mixed clusters) stay out: no constant is fitted to them.
    """
    found: dict[str, list[Prepared]] = defaultdict(list)
    for case in cases:
        try:
            prepared = prepare(case)
        except (UnscorableError, InputError):
            continue
        if prepared.step_s and case.stack:
            found[case.stack].append(prepared)
    return dict(sorted(found.items()))


def evenly(cases: Sequence[Prepared], most: int) -> tuple[Prepared, ...]:
    """Evenly spaced cases."""
    count = min(len(cases), most)
    return tuple(cases[i * len(cases) // count] for i in range(count))


def sample(cases: Sequence[Prepared]) -> Sample:
    """Evenly spaced cases, those of one model counting as a few: for the pooled fit."""
    chosen = evenly(cases, STACK_ROWS)
    model, alike = _models(chosen)
    few = np.sqrt(np.minimum(1.0, MODEL_ROWS / alike))
    return Sample(
        cases=chosen,
        weighing=Weighing(weight=few / _sigma(chosen, untuned=UNTUNED_SIGMA), model=model),
    )


def own_sample(cases: Sequence[Prepared]) -> Sample:
    """Cases for a stack's own fit: what sets a model apart is shared by its rows."""
    chosen = evenly(cases, OWN_ROWS)
    return Sample(cases=chosen, weighing=own_weighing(chosen))


def own_weighing(cases: Sequence[Prepared]) -> Weighing:
    """Of residuals whose models each differ in common."""
    weight = 1.0 / _sigma(cases, untuned=OWN_UNTUNED_SIGMA)
    return Weighing(weight=weight, model=_models(cases)[0], shared=MODEL_SHARED)


def with_spreads(spread: FloatArray) -> tuple[Parameter, ...]:
    """``PARAMETERS`` with these deviations of the prior."""
    return tuple(replace(p, spread=float(s)) for p, s in zip(PARAMETERS, spread, strict=True))


def _sigma(cases: Sequence[Prepared], *, untuned: float) -> FloatArray:
    return np.array([TUNED_SIGMA if case.tuned else untuned for case in cases])


def _models(cases: Sequence[Prepared]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which model each case is of, and how many cases are of it."""
    keys = [model_key(case) for case in cases]
    _, model, count = np.unique(keys, return_inverse=True, return_counts=True)
    return model, count[model]


def solve(
    parts: Sequence[tuple[Linear, Weighing]],
    prior: FloatArray,
    parameters: tuple[Parameter, ...] = PARAMETERS,
) -> Fitted:
    """Least squares over the parts and the prior; far rows count less (soft L1).

    parts: cases near one point each, and how much their residuals count.
    """
    spread = np.array([p.spread for p in parameters])
    low, high = _bounds(parts, parameters)

    def data(x: FloatArray) -> FloatArray:
        rows = [weighing.of(part.residual(x)) for part, weighing in parts]
        far = np.concatenate(rows) if rows else np.zeros(0)
        return np.sign(far) * np.sqrt(2.0 * (np.sqrt(1.0 + far * far) - 1.0))

    def residuals(x: FloatArray) -> FloatArray:
        return np.concatenate([data(x), (x - prior) / spread])

    start = np.clip(prior, low + 1e-9, high - 1e-9)
    found = least_squares(residuals, start, bounds=(low, high))
    slope = np.asarray(found.jac, dtype=np.float64)
    covariance = np.asarray(np.linalg.inv(slope.T @ slope), dtype=np.float64)
    deviation = np.sqrt(np.diagonal(covariance))
    return Fitted(x=np.asarray(found.x), deviation=deviation, parameters=parameters)


REACH = 1.0
"""How far x may move from where the slopes were taken."""


def _bounds(
    parts: Sequence[tuple[Linear, Weighing]], parameters: Sequence[Parameter]
) -> tuple[FloatArray, FloatArray]:
    """Those of the parameters, and within reach of every part's slopes."""
    low, high = (np.log([getattr(p, side) for p in parameters]) for side in ("low", "high"))
    for part, _ in parts:
        low = np.minimum(np.maximum(low, part.x0 - REACH), part.x0)
        high = np.maximum(np.minimum(high, part.x0 + REACH), part.x0 + 1e-6)
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The stacks near the pooled constants. linear: one set of cases a stack."""

    fitted: Fitted
    samples: Mapping[str, Sample]
    linear: Mapping[str, Linear]

    def without(self, stack: str) -> Fitted:
        """The pooled constants without one stack."""
        return _pooled(self.linear, self.samples, leave_out=stack)


def pool(stacks: Mapping[str, Sequence[Prepared]]) -> Pooled:
    """Fits the default constants: every stack counts alike, whatever its rows."""
    samples = {name: sample(cases) for name, cases in stacks.items()}
    at = before()
    linear: dict[str, Linear] = {}
    fitted = Fitted(x=position(at, PARAMETERS), deviation=np.zeros(len(PARAMETERS)))
    for _ in range(RELINEARISATIONS):
        linear = _linearised(samples, at)
        fitted = _pooled(linear, samples)
        at = fitted.efficiency
    return Pooled(fitted=fitted, samples=samples, linear=linear)


def _linearised(samples: Mapping[str, Sample], at: Efficiency) -> dict[str, Linear]:
    """All stacks in one go, then by stack."""
    names = [name for name, one in samples.items() for _ in one.cases]
    whole = linearised([case for one in samples.values() for case in one.cases], at, PARAMETERS)
    return {name: whole.rows(np.array([n == name for n in names])) for name in samples}


STACK_WEIGHT = 20.0
"""Rows that every stack counts as in the pooled fit, at most."""


def _pooled(
    linear: Mapping[str, Linear], samples: Mapping[str, Sample], *, leave_out: str = ""
) -> Fitted:
    parts = [
        (linear[name], _as_few(one.weighing, STACK_WEIGHT))
        for name, one in samples.items()
        if name != leave_out
    ]
    return solve(parts, position(before(), PARAMETERS))


def _as_few(weighing: Weighing, most: float) -> Weighing:
    share = np.sqrt(min(1.0, most / len(weighing.weight)))
    return replace(weighing, weight=weighing.weight * share)


def before() -> Efficiency:
    """The constants before the fit: the shipped ones with the fitted ones at their priors."""
    priors: dict[str, float] = {parameter.name: parameter.prior for parameter in PARAMETERS}
    return replace(DEFAULT_EFFICIENCY, **priors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A stack's own cases, near its own constants."""

    sample: Sample
    linear: Linear

    def fitted(
        self, prior: FloatArray, spread: FloatArray, seen: NDArray[np.bool_] | None = None
    ) -> Fitted:
        """The stack's constants from those of its cases that are seen. prior, spread: of x."""
        linear, weighing = self.linear, self.sample.weighing
        if seen is not None:
            cases = [case for case, keep in zip(self.sample.cases, seen, strict=True) if keep]
            linear, weighing = linear.rows(seen), own_weighing(cases)
        return solve([(linear, weighing)], prior, with_spreads(spread))


def near_stack(pooled: Pooled, name: str, cases: Sequence[Prepared]) -> Near:
    """A stack's cases near its own constants."""
    at = solve([(pooled.linear[name], pooled.samples[name].weighing)], pooled.fitted.x)
    own = own_sample(cases)
    near = Near(sample=own, linear=linearised(own.cases, at.efficiency, PARAMETERS))
    for _ in range(OWN_RELINEARISATIONS - 1):
        at = near.fitted(pooled.fitted.x, FIRST_SPREAD)
        near = replace(near, linear=linearised(own.cases, at.efficiency, PARAMETERS))
    return near


FIRST_SPREAD = np.array([parameter.spread for parameter in PARAMETERS])
"""Deviations of x that are thought of before any stack tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreads:
    """How far constants lie from the pooled ones. squared: by stack, what it tells of x, (P,)."""

    squared: Mapping[str, FloatArray]

    def without(self, stack: str) -> FloatArray:
        """Deviations of x about the pooled constants that the other stacks tell, (P,)."""
        others = [own for name, own in self.squared.items() if name != stack]
        return np.sqrt(np.mean(others, axis=0)) if others else FIRST_SPREAD

    @property
    def all(self) -> FloatArray:
        """Those of all stacks."""
        return self.without("")


def spreads(pooled: Pooled, near: Mapping[str, Near]) -> Spreads:
    """Spreads between the stacks, and with them the priors of their own fits: empirical Bayes.

    ``tau^2 = mean over stacks of (x_s - x_pooled)^2 + sd_s^2`` with x_s and sd_s fitted under tau,
    round by round (the EM algorithm of a Gaussian hierarchy, Dempster et al. 1977).
    """
    at, spread = pooled.fitted.x, FIRST_SPREAD
    found = Spreads(squared={})
    for _ in range(SPREAD_ROUNDS):
        own = {name: one.fitted(at, spread) for name, one in near.items()}
        found = Spreads(squared={k: (o.x - at) ** 2 + o.deviation**2 for k, o in own.items()})
        spread = found.all
    return found


def own_constants(pooled: Pooled, near: Mapping[str, Near], between: Spreads) -> dict[str, Fitted]:
    """Every stack's constants from its sample, with the pooled ones as the prior."""
    return {name: one.fitted(pooled.fitted.x, between.all) for name, one in near.items()}


def main() -> None:
    """Fits and prints; with --write also stores the profiles."""
    from costmodel.calibration.write import write_profiles

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="of the software profiles")
    options = parser.parse_args()
    stacks = timed_cases(c for c in read_cases(options.cases) if c.quality in "AB")
    pooled = pool(stacks)
    if options.write:
        near = {name: near_stack(pooled, name, cases) for name, cases in stacks.items()}
        write_profiles(options.write, pooled, near, spreads(pooled, near))


if __name__ == "__main__":
    main()
