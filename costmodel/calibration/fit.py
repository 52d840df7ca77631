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
from scipy.optimize import least_squares

from costmodel.calibration.case import Case, UnscorableError
from costmodel.calibration.linear import FloatArray, Linear, linearised, moved, position
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

STACK_ROWS = 80
"""Rows of a stack that are used in the fit, evenly spaced in the file; all are scored."""

RELINEARISATIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cases of one stack that a fit uses. weight: of each residual, (N,)."""

    cases: tuple[Prepared, ...]
    weight: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """x of the constants, and the standard deviation that data and prior leave it."""

    x: FloatArray
    deviation: FloatArray

    @property
    def efficiency(self) -> Efficiency:
        """The constants."""
        return moved(DEFAULT_EFFICIENCY, PARAMETERS, self.x)


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


def sample(cases: Sequence[Prepared]) -> Sample:
    """Evenly spaced cases, those of one model counting as a few."""
    count = min(len(cases), STACK_ROWS)
    chosen = [cases[i * len(cases) // count] for i in range(count)]
    return Sample(cases=tuple(chosen), weight=weights(chosen))


def weights(cases: Sequence[Prepared]) -> FloatArray:
    """Weight of each case's residual."""
    models = [model_key(case) for case in cases]
    alike = np.array([models.count(model) for model in models])
    sigma = np.array([TUNED_SIGMA if case.tuned else UNTUNED_SIGMA for case in cases])
    return np.sqrt(np.minimum(1.0, MODEL_ROWS / alike)) / sigma


def solve(parts: Sequence[tuple[Linear, FloatArray]], prior: FloatArray) -> Fitted:
    """Least squares over the parts and the prior; far rows count less (soft L1).

    parts: cases near one point each, and the weight of their residuals.
    """
    spread = np.array([p.spread for p in PARAMETERS])
    low, high = _bounds(parts)

    def data(x: FloatArray) -> FloatArray:
        rows = [weight * part.residual(x) for part, weight in parts]
        far = np.concatenate(rows) if rows else np.zeros(0)
        return np.sign(far) * np.sqrt(2.0 * (np.sqrt(1.0 + far * far) - 1.0))

    def residuals(x: FloatArray) -> FloatArray:
        return np.concatenate([data(x), (x - prior) / spread])

    start = np.clip(prior, low + 1e-9, high - 1e-9)
    found = least_squares(residuals, start, bounds=(low, high))
    slope = np.asarray(found.jac, dtype=np.float64)
    covariance = np.asarray(np.linalg.inv(slope.T @ slope), dtype=np.float64)
    return Fitted(x=np.asarray(found.x), deviation=np.sqrt(np.diagonal(covariance)))


REACH = 1.0
"""How far x may move from where the slopes were taken."""


def _bounds(parts: Sequence[tuple[Linear, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Those of the parameters, and within reach of every part's slopes."""
    low, high = (np.log([getattr(p, side) for p in PARAMETERS]) for side in ("low", "high"))
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
        (linear[name], one.weight * np.sqrt(min(1.0, STACK_WEIGHT / len(one.cases))))
        for name, one in samples.items()
        if name != leave_out
    ]
    return solve(parts, position(before(), PARAMETERS))


def before() -> Efficiency:
    """The constants before the fit: the shipped ones with the fitted ones at their priors."""
    priors: dict[str, float] = {parameter.name: parameter.prior for parameter in PARAMETERS}
    return replace(DEFAULT_EFFICIENCY, **priors)


def own_constants(pooled: Pooled, near: Mapping[str, Linear]) -> dict[str, Fitted]:
    """Every stack's constants from its sample, with the pooled ones as the prior."""
    return {
        name: solve([(linear, pooled.samples[name].weight)], pooled.fitted.x)
        for name, linear in near.items()
    }


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
        near = {name: near_stack(pooled, name) for name in stacks}
        write_profiles(options.write, pooled, own_constants(pooled, near))


def near_stack(pooled: Pooled, name: str) -> Linear:
    """A stack's cases near its own constants."""
    one = pooled.samples[name]
    near = solve([(pooled.linear[name], one.weight)], pooled.fitted.x)
    return linearised(one.cases, near.efficiency, PARAMETERS)


if __name__ == "__main__":
    main()
