"""Fits what a chip reaches to micro-benchmarks: products, streams, attention cores.

A chip's sheet states the best share of the peak that any large product, and of the memory bandwidth
that any large stream, was seen to reach. How the share falls for smaller products is the cost
model's ``m/(m + m0) n/(n + n0) k/(k + n0)`` (``costmodel.stage.compute``), for shorter attention
cores ``s/(s + h)``; those constants belong to the software.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costmodel.calibration.measurements import (
    AttentionPoint,
    GemmPoint,
    Number,
    Residuals,
    StreamPoint,
)
from costmodel.calibration.robust import Guess, fitted, residuals_of

FloatArray = NDArray[np.float64]

HALF_SPREAD = 1.0
"""Standard deviation of the priors on the logarithms of the half sizes."""

HALF_BOUNDS = (1.0, 1e5)
TOP = 3
"""Fastest points whose scatter is the uncertainty of the best one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halves:
    """Constants of a saturating law before the fit: rows m0, columns or depth n0; tokens h."""

    rows: float
    columns: float
    length: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmFit:
    """Of the products of one precision. best: the highest rate seen, FLOP/s. asymptote: of the law
    at infinite size, FLOP/s."""

    best: Number
    best_where: str
    asymptote: Number
    half_rows: Number
    half_columns: Number
    residuals: Residuals


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFit:
    """rate: at infinite length, FLOP/s. half_length: tokens at which it halves."""

    rate: Number
    half_length: Number
    residuals: Residuals


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFit:
    """best: the highest bandwidth seen, bytes/s."""

    best: Number
    best_where: str


def fit_gemms(points: Sequence[GemmPoint], before: Halves) -> GemmFit:
    """Best rate, asymptote and half sizes of products of one precision."""
    rate = np.array([point.flop_per_s for point in points])
    sizes = np.array([(point.m, point.n, point.k) for point in points])

    def law(x: FloatArray) -> FloatArray:
        half = np.exp(np.array([x[1], x[2], x[2]]))
        return x[0] + np.log(sizes / (sizes + half)).sum(axis=1)

    x, deviation = _fitted(law, np.log(rate), np.log([before.rows, before.columns]))
    numbers = [_number(value, sd, len(points)) for value, sd in zip(x, deviation, strict=True)]
    return GemmFit(
        best=_best(rate),
        best_where=points[int(rate.argmax())].where,
        asymptote=numbers[0],
        half_rows=numbers[1],
        half_columns=numbers[2],
        residuals=residuals_of(np.log(rate) - law(x), [point.where for point in points]),
    )


def fit_attention(points: Sequence[AttentionPoint], before: Halves) -> AttentionFit:
    """Rate and half length of attention cores."""
    rate = np.array([point.flop_per_s for point in points])
    length = np.array([point.sequence for point in points])

    def law(x: FloatArray) -> FloatArray:
        return x[0] + np.log(length / (length + np.exp(x[1])))

    x, deviation = _fitted(law, np.log(rate), np.log([before.length]))
    return AttentionFit(
        rate=_number(x[0], deviation[0], len(points)),
        half_length=_number(x[1], deviation[1], len(points)),
        residuals=residuals_of(np.log(rate) - law(x), [point.where for point in points]),
    )


def fit_streams(points: Sequence[StreamPoint]) -> StreamFit:
    """The best bandwidth of large streams."""
    rate = np.array([point.moved_bytes / point.seconds for point in points])
    return StreamFit(best=_best(rate), best_where=points[int(rate.argmax())].where)


def _fitted(
    law: Callable[[FloatArray], FloatArray], target: FloatArray, prior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x = (ln asymptote, ln half sizes...) and the standard deviations left."""
    low, high = np.log(HALF_BOUNDS)
    guess = Guess(
        x=np.append(target.max(), prior),
        low=np.append(target.min() - 10.0, np.full(len(prior), low)),
        high=np.append(target.max() + 10.0, np.full(len(prior), high)),
        prior={i: (float(one), HALF_SPREAD) for i, one in enumerate(prior, start=1)},
    )
    return fitted(law, target, guess)


def _best(rate: FloatArray) -> Number:
    top = np.sort(rate)[-TOP:]
    return Number(value=float(top[-1]), relative_sd=float(np.log(top).std()), points=int(rate.size))


def _number(log_value: float, deviation: float, points: int) -> Number:
    return Number(value=float(np.exp(log_value)), relative_sd=float(deviation), points=points)
