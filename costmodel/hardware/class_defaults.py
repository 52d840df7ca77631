"""What to take for a number that nobody published, when a cluster asks for class defaults.

Every rule is written out in the documentation of clusters, and every use of one is kept
in `Chip.assumed` or `Link.assumed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from costmodel.hardware.values import PRECISIONS, Assumption, Chip
from costmodel.units import format_rate

Numbers = Mapping[str, float | None]

MATMUL_FRACTION = 0.7
"""Median of the large matrix products measured on the chips of `cluster_profiles/chips`."""

MEMORY_FRACTION = 0.83
"""Median of the stream bandwidths measured on the same chips, each measurement once."""

SCALE_UP_BYTES_PER_S = 32e9
"""A scale-up link about which nothing is published counts as PCIe 4.0 x16, one direction."""

STATED_SHARE = 0.5
"""A bandwidth published without a direction counts both directions."""

_PEAK_RULES = (
    ("bf16", "fp16", 1.0),
    ("fp16", "bf16", 1.0),
    ("tf32", "bf16", 1 / 2),
    ("fp32", "bf16", 1 / 16),
    ("fp8", "bf16", 1.0),
    ("mxfp8", "fp8", 1.0),
    ("nvfp4", "fp8", 1.0),
)
"""(unknown, known, share). The 16-bit formats run alike; TF32 at half of them and FP32 at a
sixteenth as on A100; where no 8- or 4-bit rate is published, none is gained from them."""

_FRACTION_RULES = (("bf16", "fp16"), ("fp16", "bf16"), ("mxfp8", "fp8"), ("nvfp4", "fp8"))
"""(unknown, known): formats of one width reach the same share of their peak."""


def fill_chip(chip: Chip) -> Chip:
    """The chip with the unknown numbers of its class filled in and listed as assumed.

    Memory size and bandwidth have no class default; what the chip cannot do stays so.
    """
    peaks = _filled(chip, chip.peak_flop_per_s, _PEAK_RULES)
    fraction_rules = tuple((unknown, known, 1.0) for unknown, known in _FRACTION_RULES)
    fractions = _filled(chip, chip.matmul_fraction, fraction_rules)
    for precision in PRECISIONS:
        if peaks.get(precision) is not None and fractions.get(precision) is None:
            fractions[precision] = MATMUL_FRACTION
    assumed = [
        *_new("peak", chip.peak_flop_per_s, peaks, "FLOP/s"),
        *_new("matmul_fraction", chip.matmul_fraction, fractions),
    ]
    if chip.memory_fraction is None:
        assumed.append(Assumption(field="memory_fraction", value=str(MEMORY_FRACTION)))
    return replace(
        chip,
        peak_flop_per_s=peaks,
        matmul_fraction=fractions,
        memory_fraction=chip.memory_fraction or MEMORY_FRACTION,
        assumed=tuple(assumed),
    )


def _filled(
    chip: Chip, numbers: Numbers, rules: tuple[tuple[str, str, float], ...]
) -> dict[str, float | None]:
    filled = dict(numbers)
    for unknown, known, share in rules:
        source = filled.get(known)
        if source is None or filled.get(unknown) is not None or unknown in chip.unsupported:
            continue
        filled[unknown] = source * share
    return filled


def _new(name: str, before: Numbers, after: Numbers, unit: str = "") -> list[Assumption]:
    return [
        Assumption(
            field=name, key=precision, value=format_rate(value, unit) if unit else f"{value:g}"
        )
        for precision in PRECISIONS
        if (value := after.get(precision)) is not None and before.get(precision) is None
    ]
