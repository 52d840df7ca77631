"""Least squares on logarithms that a few far points do not spoil."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from costmodel.calibration.measurements import Residuals

FloatArray = NDArray[np.float64]

SIGMA = 0.1
"""Standard deviation of ln(predicted / measured) that is expected before the points tell it."""

SIGMAS = (0.01, 0.3)
"""Bounds of what the points may tell."""

FEWEST_PER_NUMBER = 3
"""Points for each fitted number from which the points tell it."""

NORMAL = 1.4826
"""Standard deviation over median absolute deviation of normal errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """Where a fit starts. x: logarithms; low, high: their bounds. prior: centre and standard
    deviation of a number by its index, for those that few points tell."""

    x: FloatArray
    low: FloatArray
    high: FloatArray
    prior: dict[int, tuple[float, float]]


def fitted(
    law: Callable[[FloatArray], FloatArray], target: FloatArray, guess: Guess
) -> tuple[FloatArray, FloatArray]:
    """x at which ``law(x)`` is nearest to the target, and the standard deviations left.

    Soft L1 of the residuals over their own scatter, which a first fit finds.
    """
    x, _ = _solved(law, target, guess, SIGMA)
    sigma = SIGMA
    if len(target) >= FEWEST_PER_NUMBER * len(x):
        scatter = NORMAL * float(np.median(np.abs(law(x) - target)))
        sigma = min(max(scatter, SIGMAS[0]), SIGMAS[1])
    return _solved(law, target, guess, sigma)


def _solved(
    law: Callable[[FloatArray], FloatArray], target: FloatArray, guess: Guess, sigma: float
) -> tuple[FloatArray, FloatArray]:
    def residuals(x: FloatArray) -> FloatArray:
        far = (law(x) - target) / sigma
        soft = np.sign(far) * np.sqrt(2.0 * (np.sqrt(1.0 + far * far) - 1.0))
        beliefs = [(x[i] - centre) / spread for i, (centre, spread) in guess.prior.items()]
        return np.concatenate([soft, beliefs])

    start = np.clip(guess.x, guess.low + 1e-6, guess.high - 1e-6)
    found = least_squares(residuals, start, bounds=(guess.low, guess.high))
    slope = np.asarray(found.jac, dtype=np.float64)
    variance = np.diagonal(np.linalg.pinv(slope.T @ slope))
    return np.asarray(found.x, dtype=np.float64), np.sqrt(np.maximum(variance, 0.0))


def residuals_of(log_ratio: FloatArray, where: Sequence[str]) -> Residuals:
    """Errors of all points: predicted / measured - 1."""
    errors = np.expm1(log_ratio)
    worst = int(np.abs(errors).argmax())
    return Residuals(
        median=float(np.median(np.abs(errors))),
        p90=float(np.quantile(np.abs(errors), 0.9)),
        worst=float(errors[worst]),
        worst_where=where[worst],
        n=len(where),
    )
