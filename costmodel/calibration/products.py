"""Fits what a chip reaches to micro-benchmarks: products, streams, attention cores.

A chip's sheet states the best share of the peak that any large product, and of the memory bandwidth
that any large stream, was seen to reach. What a product takes is the cost model's
``2 m n k / R + u bytes + t0`` (``costmodel.stage.compute``), how the rate falls for shorter
attention cores ``s/(s + h)``; those constants belong to the software.
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
from costmodel.calibration.robust import SIGMA, Guess, fitted, residuals_of
from costmodel.stage.local import OPERAND_BYTES

FloatArray = NDArray[np.float64]

SPREAD = 1.0
"""Standard deviation of the priors on the logarithms of all but the rate."""

REACH = 7.0
"""How far from their priors these logarithms may go."""

TOP = 3
"""Fastest points whose scatter is the uncertainty of the best one."""


WRITTEN_BYTES = 2.0
"""Bytes of an element of a product's result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Constants of the laws before the fit: seconds t0 of a product, seconds u of a byte that the
    arithmetic does not hide; tokens h."""

    fixed_s: float
    byte_s: float
    length: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmFit:
    """Of the products of one precision. best: the highest rate seen, FLOP/s. asymptote: of the law
    at infinite size, FLOP/s. byte_s: unhidden seconds per byte."""

    best: Number
    best_where: str
    asymptote: Number
    fixed_s: Number
    byte_s: Number
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


def fit_gemms(points: Sequence[GemmPoint], before: Before) -> GemmFit:
    """Best rate, asymptote, fixed and unhidden memory time of products of one precision."""
    rate = np.array([point.flop_per_s for point in points])
    m, n, k = np.array([(point.m, point.n, point.k) for point in points], dtype=np.float64).T
    batch = np.array([point.batch for point in points])
    flop = 2.0 * batch * m * n * k
    read = OPERAND_BYTES.get(points[0].precision, WRITTEN_BYTES) * (m * k + k * n)
    operands = batch * (read + WRITTEN_BYTES * m * n)

    def law(x: FloatArray) -> FloatArray:
        return np.log(flop / (flop / np.exp(x[0]) + np.exp(x[1]) + operands * np.exp(x[2])))

    prior = np.log([before.fixed_s, before.byte_s])
    x, deviation = _fitted(law, np.log(rate), prior)
    numbers = [_number(value, sd, len(points)) for value, sd in zip(x, deviation, strict=True)]
    return GemmFit(
        best=_best(rate),
        best_where=points[int(rate.argmax())].where,
        asymptote=numbers[0],
        fixed_s=numbers[1],
        byte_s=numbers[2],
        residuals=residuals_of(np.log(rate) - law(x), [point.where for point in points]),
    )


def fit_attention(points: Sequence[AttentionPoint], before: Before) -> AttentionFit:
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
    """x = (ln asymptote, the logarithms with priors...) and the standard deviations left."""
    guess = Guess(
        x=np.append(target.max(), prior),
        low=np.append(target.min() - 10.0, prior - REACH),
        high=np.append(target.max() + 10.0, prior + REACH),
        prior={i: (float(one), SPREAD) for i, one in enumerate(prior, start=1)},
    )
    return fitted(law, target, guess)


def _best(rate: FloatArray) -> Number:
    top = np.sort(rate)[-TOP:]
    scatter = float(np.log(top).std()) if len(top) == TOP else SIGMA
    return Number(value=float(top[-1]), relative_sd=scatter, points=int(rate.size))


def _number(log_value: float, deviation: float, points: int) -> Number:
    return Number(value=float(np.exp(log_value)), relative_sd=float(deviation), points=points)
