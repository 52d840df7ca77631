"""A software profile from a stack's measured cases, or from kernels measured alone."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from costmodel.calibration.chip_profile import DEFAULTS, fits_by_precision, residuals_of_gemms
from costmodel.calibration.measurements import Measurements, Number, Residuals
from costmodel.calibration.products import fit_attention, fit_streams
from costmodel.calibration.profiles import SOFTWARE, Profile, Stated
from costmodel.calibration.stack import StackFit, fit_stack, moved_constants, usable
from costmodel.calibration.write import MOVED
from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.errors import InputError
from costmodel.hardware.values import ATTENTION_KERNELS, ATTENTION_SHARE, Chip
from costmodel.software.read import profile_names, software_profile
from costmodel.software.values import CONSTANTS

Document = dict[str, Any]

TELLING = 0.5
"""A constant is stated where the points bring the deviation of its logarithm below it."""

MOST_ATTENTION = 1.5
"""A share above it says that products and attention were not measured under like conditions."""


def stack_profile(measured: Measurements, name: str) -> Profile:
    """The constants of a stack, from its measured cases.

    Raises InputError, with the reason of each, where none of the cases can be used.
    """
    cases, skipped = usable(measured.cases, name)
    if not cases:
        reasons = "; ".join(f"{one.case.id}: {one.reason}" for one in skipped[:5])
        raise InputError.of(
            field="measured cases",
            value=f"{len(skipped)} that cannot be predicted",
            rule="must hold one with a layout and a time",
            fix=reasons,
        )
    fit = fit_stack(cases, skipped)
    numbers = {
        key: Stated(
            name=f"efficiency/{key}",
            value=value,
            unit="",
            before=float(getattr(DEFAULT_EFFICIENCY, key)),
            relative_sd=deviation,
            points=fit.used,
        )
        for key, (value, deviation) in moved_constants(fit.fitted, by=MOVED).items()
    }
    return Profile(
        folder=SOFTWARE,
        name=name,
        document=_document(name, numbers, _counts(fit), _runs(fit)),
        numbers=tuple(numbers.values()),
        kept=_kept(numbers),
        errors=_errors(fit),
        remarks=_remarks(fit),
    )


def kernel_profile(measured: Measurements, name: str, chip: Chip | None) -> Profile:
    """The constants of products and attention, from kernels measured alone."""
    numbers: dict[str, Stated] = {}
    residuals: dict[str, Residuals] = {}
    remarks = ["from kernels measured alone; measured cases say what training makes of them"]
    gemms = fits_by_precision(measured.gemms)
    if gemms:
        fit = max(gemms.values(), key=lambda one: one.best.points)
        _state(numbers, "gemm_fixed_s", fit.fixed_s)
        _state_traffic(numbers, fit.byte_s, _streaming_bytes_per_s(measured, chip))
        residuals |= residuals_of_gemms(gemms)
    if measured.attention:
        attention = fit_attention(measured.attention, DEFAULTS)
        _state(numbers, "attention_half_length", attention.half_length)
        best = _attention_flop_per_s(measured, chip)
        if best is not None:
            rate = attention.rate
            share = Number(
                value=rate.value / best, relative_sd=rate.relative_sd, points=rate.points
            )
            if share.value <= MOST_ATTENTION:
                _state(numbers, "attention", share)
            else:
                remarks.append(f"attention at {share.value:.2g} of its expected rate is not stated")
        residuals["attention"] = attention.residuals
    rows = len(measured.gemms) + len(measured.attention)
    return Profile(
        folder=SOFTWARE,
        name=name,
        document=_document(name, numbers, {"kernels": rows}, {}),
        numbers=tuple(numbers.values()),
        kept=_kept(numbers),
        residuals=residuals,
        remarks=tuple(remarks),
    )


def _attention_flop_per_s(measured: Measurements, chip: Chip | None) -> float | None:
    """What the cost model takes the chip's attention kernels to reach: what its sheet says, or a
    share of the best products' rate."""
    kernel = ATTENTION_KERNELS[0 if DEFAULT_EFFICIENCY.vendor_attention else 1]
    fraction = chip.attention_fraction.get(kernel) if chip else None
    peak = chip.peak_flop_per_s.get(measured.attention[0].precision) if chip else None
    if fraction and peak:
        return fraction * peak
    best = _matmul_flop_per_s(measured, chip)
    return None if best is None else best * ATTENTION_SHARE


def _matmul_flop_per_s(measured: Measurements, chip: Chip | None) -> float | None:
    """The best rate of products in the precision of the attention cores: measured, or the
    sheet's."""
    precision = measured.attention[0].precision
    rates = [point.flop_per_s for point in measured.gemms if point.precision == precision]
    if rates:
        return max(rates)
    if chip is None:
        return None
    peak, share = chip.peak_flop_per_s.get(precision), chip.matmul_fraction.get(precision)
    return peak * share if peak and share else None


def _state_traffic(numbers: dict[str, Stated], byte_s: Number, rate: float | None) -> None:
    """The unhidden share of a product's memory traffic, where the memory's rate is known."""
    if rate is not None:
        share = Number(
            value=byte_s.value * rate, relative_sd=byte_s.relative_sd, points=byte_s.points
        )
        _state(numbers, "gemm_traffic", share)


def _streaming_bytes_per_s(measured: Measurements, chip: Chip | None) -> float | None:
    """The best bandwidth of streams: measured, or the sheet's."""
    if measured.streams:
        return fit_streams(measured.streams).best.value
    if chip is None or chip.memory_bytes_per_s is None or chip.memory_fraction is None:
        return None
    return chip.streaming_bytes_per_s()


def _state(numbers: dict[str, Stated], key: str, number: Number) -> None:
    if number.relative_sd < TELLING:
        numbers[key] = Stated(
            name=f"efficiency/{key}",
            value=number.value,
            unit="",
            before=float(getattr(DEFAULT_EFFICIENCY, key)),
            relative_sd=number.relative_sd,
            points=number.points,
        )


def _document(
    name: str, numbers: Mapping[str, Stated], fit: Document, runs: Mapping[str, object]
) -> Document:
    entries = {
        key: {
            "value": float(f"{stated.value:.4g}"),
            "fitted": True,
            "sd": float(f"{stated.relative_sd:.2g}"),
        }
        for key, stated in numbers.items()
    }
    title = f"{name}, calibrated"
    return {"title": title, "runs": dict(runs), "fit": fit, "efficiency": entries}


def _counts(fit: StackFit) -> Document:
    return {"rows": fit.used, "models": fit.models}


def _runs(fit: StackFit) -> Mapping[str, object]:
    """How the cases' own stack runs, where they name one that is bundled."""
    known = [stack for stack in fit.stacks if stack in profile_names()]
    return software_profile(known[0]).runs if len(fit.stacks) == 1 and known else {}


def _kept(numbers: Mapping[str, Stated]) -> tuple[str, ...]:
    return tuple(f"efficiency/{name}" for name in CONSTANTS if name not in numbers)


def _errors(fit: StackFit) -> Document:
    held_out = asdict(fit.held_out) if fit.held_out else None
    return {"before": asdict(fit.before), "after": asdict(fit.after), "held_out": held_out}


def _remarks(fit: StackFit) -> tuple[str, ...]:
    remarks = [f"{fit.rows} cases of {fit.models} models; the bundled default is the prior"]
    if fit.used < fit.rows:
        remarks.append(f"fitted to {fit.used} of them, evenly spaced; errors are of all")
    if fit.held_out is None:
        remarks.append("too few models to hold some out: errors are of rows that the fit has seen")
    return (*remarks, *(f"left out {one.case.id}: {one.reason}" for one in fit.skipped))
