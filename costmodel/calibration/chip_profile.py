"""A chip's sheet from products, streams and attention cores that were measured on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from costmodel.calibration.measurements import GemmPoint, Measurements, Residuals
from costmodel.calibration.products import Before, GemmFit, StreamFit, fit_gemms, fit_streams
from costmodel.calibration.profiles import (
    BYTES_PER_S,
    CHIPS,
    FLOP_PER_S,
    Profile,
    Stated,
    kept_numbers,
    quantity,
    with_numbers,
)
from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.errors import InputError, Violation
from costmodel.hardware.sheets.read import sheet_document
from costmodel.hardware.values import PRECISIONS, Chip

Document = dict[str, Any]

FIELDS = (
    "memory",
    "memory_bandwidth",
    "memory_fraction",
    "peak",
    "matmul_fraction",
    "attention_fraction",
)

ABOVE = 1.05
"""A rate above this multiple of the published peak is refused: clocks do not vary by more."""

LEAST_SHARE = 0.01
"""A best rate below this share of the published peak is refused."""

SHORT = 1.15
"""Where the fitted law promises this much more than the best point, larger shapes were left out."""

USUAL_BYTES_PER_S = 2e12
"""Memory bandwidth for the prior of a product's unhidden memory time."""

DEFAULTS = Before(
    fixed_s=DEFAULT_EFFICIENCY.gemm_fixed_s,
    byte_s=DEFAULT_EFFICIENCY.gemm_traffic / USUAL_BYTES_PER_S,
    length=DEFAULT_EFFICIENCY.attention_half_length,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChip:
    """A chip without a bundled sheet: its best measured rates stand for its peaks."""

    name: str
    title: str
    vendor: str
    memory_bytes: float
    compiled: str


def fits_by_precision(points: Sequence[GemmPoint]) -> dict[str, GemmFit]:
    """The fit of each precision's products."""
    named = {name: [p for p in points if p.precision == name] for name in PRECISIONS}
    return {name: fit_gemms(own, DEFAULTS) for name, own in named.items() if own}


def chip_profile(measured: Measurements, chip: Chip, source: str) -> Profile:
    """The sheet of a bundled chip with the measured shares.

    Raises InputError for rates above the peak or far below it, and for precisions without a
    published one.
    """
    gemms = fits_by_precision(measured.gemms)
    streams = fit_streams(measured.streams) if measured.streams else None
    _check(measured, chip)
    numbers = {
        f"matmul_fraction/{precision}": _share(precision, fit, chip)
        for precision, fit in gemms.items()
    }
    if streams is not None:
        numbers["memory_fraction"] = _memory_share(streams, chip)
    _check_shares(numbers, chip)
    base = sheet_document(CHIPS, chip.name)
    return Profile(
        folder=CHIPS,
        name=chip.name,
        document=with_numbers(base, numbers, source),
        numbers=tuple(numbers.values()),
        kept=tuple(kept_numbers(base, FIELDS, numbers)),
        residuals=residuals_of_gemms(gemms),
        remarks=tuple(_remarks(gemms)),
    )


def new_chip_profile(measured: Measurements, new: NewChip, source: str) -> Profile:
    """A sheet whose peaks are the best measured rates, so that their shares are 1."""
    gemms = fits_by_precision(measured.gemms)
    numbers: dict[str, Stated] = {}
    for precision, fit in gemms.items():
        numbers[f"peak/{precision}"] = _stated(f"peak/{precision}", fit.best, FLOP_PER_S)
        numbers[f"matmul_fraction/{precision}"] = _one(f"matmul_fraction/{precision}", fit.best)
    if measured.streams:
        best = fit_streams(measured.streams).best
        numbers["memory_bandwidth"] = _stated("memory_bandwidth", best, BYTES_PER_S)
        numbers["memory_fraction"] = _one("memory_fraction", best)
    return Profile(
        folder=CHIPS,
        name=new.name,
        document=with_numbers(_bare(new, source), numbers, source),
        numbers=tuple(numbers.values()),
        kept=(),
        residuals=residuals_of_gemms(gemms),
        remarks=("no sheet is bundled for this chip: best measured rates stand for peaks",),
    )


def residuals_of_gemms(gemms: dict[str, GemmFit]) -> dict[str, Residuals]:
    """By precision, of the law over all shapes."""
    return {f"products, {name}": fit.residuals for name, fit in gemms.items()}


def _check(measured: Measurements, chip: Chip) -> None:
    faults: list[Violation] = []
    for point in measured.gemms:
        peak = chip.peak_flop_per_s.get(point.precision)
        if peak is None:
            rule = f"must be of a precision whose peak {chip.name} has"
            fix = "name the chip it was measured on, or leave the row out"
            value = point.precision
        elif point.flop_per_s > ABOVE * peak:
            rule = f"must not exceed the peak of {chip.name}, {quantity(peak, FLOP_PER_S)}"
            fix = "check chip, precision, unit of time and whether the device was synchronised"
            value = quantity(point.flop_per_s, FLOP_PER_S)
        else:
            continue
        faults.append(Violation(field=point.where, value=value, rule=rule, fix=fix))
    faults += _stream_faults(measured, chip)
    if faults:
        raise InputError(faults)


def _check_shares(numbers: Mapping[str, Stated], chip: Chip) -> None:
    """Raises InputError for shares that only wrong units or tiny shapes explain."""
    faults = [
        Violation(
            field=name,
            value=f"{number.value:.2g}",
            rule=f"must reach {LEAST_SHARE:.0%} of what {chip.name} can do",
            fix=f"check the unit of time ({number.note}), and measure larger shapes",
        )
        for name, number in numbers.items()
        if number.value < LEAST_SHARE
    ]
    if faults:
        raise InputError(faults)


def _stream_faults(measured: Measurements, chip: Chip) -> list[Violation]:
    bandwidth = chip.memory_bytes_per_s
    if bandwidth is None and measured.streams:
        rule, fix = f"must be known of {chip.name} for a share of it", "leave the streams out"
        where = measured.streams[0].where
        return [Violation(field=where, value="memory_bandwidth", rule=rule, fix=fix)]
    return [
        Violation(
            field=point.where,
            value=quantity(point.moved_bytes / point.seconds, BYTES_PER_S),
            rule=f"must not exceed the memory bandwidth of {chip.name}, "
            f"{quantity(bandwidth, BYTES_PER_S)}",
            fix="check chip and unit of time; larger buffers do not stay in the cache",
        )
        for point in measured.streams
        if bandwidth is not None and point.moved_bytes / point.seconds > ABOVE * bandwidth
    ]


def _share(precision: str, fit: GemmFit, chip: Chip) -> Stated:
    return Stated(
        name=f"matmul_fraction/{precision}",
        value=min(1.0, fit.best.value / chip.peak(precision)),
        unit="",
        before=chip.matmul_fraction.get(precision),
        relative_sd=fit.best.relative_sd,
        points=fit.best.points,
        note=f"best shape at {fit.best_where}",
    )


def _memory_share(fit: StreamFit, chip: Chip) -> Stated:
    return Stated(
        name="memory_fraction",
        value=min(1.0, fit.best.value / (chip.memory_bytes_per_s or fit.best.value)),
        unit="",
        before=chip.memory_fraction,
        relative_sd=fit.best.relative_sd,
        points=fit.best.points,
        note=f"largest at {fit.best_where}",
    )


def _stated(name: str, number: Any, unit: str) -> Stated:
    return Stated(
        name=name,
        value=number.value,
        unit=unit,
        before=None,
        relative_sd=number.relative_sd,
        points=number.points,
        note="best measured" if unit else "",
    )


def _one(name: str, number: Any) -> Stated:
    note = "of the best measured rate"
    sd, points = number.relative_sd, number.points
    return Stated(
        name=name, value=1.0, unit="", before=None, relative_sd=sd, points=points, note=note
    )


def _remarks(gemms: dict[str, GemmFit]) -> list[str]:
    return [
        f"{name}: the law promises {fit.asymptote.value / fit.best.value:.2f} x the best point for "
        "larger shapes; measure some"
        for name, fit in gemms.items()
        if fit.asymptote.value > SHORT * fit.best.value and fit.asymptote.relative_sd < SHORT - 1.0
    ]


def _bare(new: NewChip, source: str) -> Document:
    memory = f"{round(new.memory_bytes / 2**20)} MiB"
    return {
        "title": new.title,
        "vendor": new.vendor,
        "compiled": new.compiled,
        "confidence": "low",
        "memory": {"value": memory, "source": source, "confidence": "high"},
        "memory_bandwidth": "unknown",
        "memory_fraction": "unknown",
        "peak": dict.fromkeys(PRECISIONS, "unknown"),
        "matmul_fraction": dict.fromkeys(PRECISIONS[:5], "unknown"),
        "power": "unknown",
        "scale_up": {"link": f"{new.name}-link", "domain_chips": "unknown"},
        "sources": [source],
    }
