"""Step times near a set of constants, as a simple function of them.

Evaluating a case takes milliseconds, and a fit would ask for it hundreds of times. So each case
is evaluated once at the constants and once beside each of them. A step time is a sum of terms,
each proportional to a constant or to its inverse, so with J the slopes of ln T in x = ln constant
the fit works on ``T(x) = T(x0) (1 + sum |J| (exp(sign(J) (x - x0)) - 1))``: exact but for what
hides behind something else.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from math import exp, log
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costmodel.calibration.prepare import Prepared
from costmodel.efficiency import Efficiency
from costmodel.step import Evaluator

FloatArray = NDArray[np.float64]

STEP = 0.05
"""Distance in x at which the slope is taken."""

LEAST = 0.02
"""Smallest time over that at x0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A constant that is fitted: x is its logarithm, so that it stays positive.

    prior: its value before the fit. spread: standard deviation of x that it is given. low, high:
    bounds of the value.
    """

    name: str
    prior: float
    spread: float
    low: float
    high: float

    def value(self, x: float) -> float:
        """The constant at x, within its bounds."""
        return min(max(exp(x), self.low), self.high)

    def at(self, efficiency: Efficiency) -> float:
        """x of these constants."""
        return log(max(float(getattr(efficiency, self.name)), 1e-12))


def moved(efficiency: Efficiency, parameters: Sequence[Parameter], x: FloatArray) -> Efficiency:
    """The constants at x."""
    values: dict[str, Any] = {
        parameter.name: parameter.value(float(at))
        for parameter, at in zip(parameters, x, strict=True)
    }
    return replace(efficiency, **values)


def position(efficiency: Efficiency, parameters: Sequence[Parameter]) -> FloatArray:
    """x of these constants."""
    return np.array([p.at(efficiency) for p in parameters])


def step_seconds(prepared: Prepared, efficiency: Efficiency) -> float:
    """Predicted seconds of a step."""
    problem = prepared.problem_under(efficiency)
    total = 0.0
    for layout, share in prepared.layouts:
        options = (s.option for pipeline in layout.pipelines for s in pipeline.stages)
        total += share * Evaluator.of(problem, options).step_seconds(layout)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Cases near x0. log_s: ln of predicted seconds, (N,); slope: (N, P); target: ln of measured
    seconds, (N,)."""

    x0: FloatArray
    log_s: FloatArray
    slope: FloatArray
    target: FloatArray

    def residual(self, x: FloatArray) -> FloatArray:
        """ln of predicted over measured, (N,)."""
        away = np.sign(self.slope) * (x - self.x0)
        grown = 1.0 + (np.abs(self.slope) * np.expm1(away)).sum(axis=1)
        return self.log_s + np.log(np.maximum(grown, LEAST)) - self.target

    def rows(self, chosen: NDArray[np.bool_]) -> "Linear":
        """Some of the cases."""
        return replace(
            self,
            log_s=self.log_s[chosen],
            slope=self.slope[chosen],
            target=self.target[chosen],
        )


def linearised(
    cases: Sequence[Prepared], efficiency: Efficiency, parameters: Sequence[Parameter]
) -> Linear:
    """Evaluates the cases at these constants and beside each of them."""
    x0 = position(efficiency, parameters)
    steps = np.array(
        [STEP if np.exp(x + STEP) < p.high else -STEP for x, p in zip(x0, parameters, strict=True)]
    )
    beside = [moved(efficiency, parameters, x0 + unit) for unit in np.diag(steps)]
    log_s, *columns = all_log_seconds(cases, [efficiency, *beside])
    slope = (np.array(columns).reshape(len(parameters), len(cases)).T - log_s[:, None]) / steps
    target = np.array([log(case.step_s or 1.0) for case in cases])
    return Linear(x0=x0, log_s=log_s, slope=slope, target=target)


def all_log_seconds(cases: Sequence[Prepared], constants: Sequence[Efficiency]) -> list[FloatArray]:
    """ln of every case's predicted seconds under each of the constants, on all processors."""
    if len(cases) * len(constants) < WORTH_FORKING:
        return [_log_seconds(cases, one) for one in constants]
    _SHARED[:] = cases
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("fork")) as workers:
        return list(workers.map(_log_seconds_of_shared, constants))


WORTH_FORKING = 2000
_SHARED: list[Prepared] = []
"""The cases, for forked processes to inherit: they cannot be sent."""


def _log_seconds_of_shared(efficiency: Efficiency) -> FloatArray:
    return _log_seconds(_SHARED, efficiency)


def _log_seconds(cases: Sequence[Prepared], efficiency: Efficiency) -> FloatArray:
    return np.array([log(step_seconds(case, efficiency)) for case in cases])
