"""Text with a unit into SI numbers at the edge, and SI numbers into text for people.

The table is closed and case-sensitive: `Gb` is bits and `GB` is bytes, `MB` is
10^6 bytes and `MiB` is 2^20 bytes. Inside haplan only SI units occur: bytes,
bytes/s, seconds, FLOP/s, USD, watts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from costmodel.errors import InputError

_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*([^\s0-9].*?)\s*")
_SI = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}


class Dimension(StrEnum):
    """What a number measures; the value names the SI unit used inside."""

    BYTES = "bytes"
    BYTES_PER_S = "bytes/s"
    SECONDS = "s"
    FLOP_PER_S = "FLOP/s"
    USD = "USD"
    WATTS = "W"


EXAMPLES: Mapping[Dimension, str] = MappingProxyType(
    {
        Dimension.BYTES: "80 GB",
        Dimension.BYTES_PER_S: "900 GB/s",
        Dimension.SECONDS: "2 us",
        Dimension.FLOP_PER_S: "989 TFLOP/s",
        Dimension.USD: "2.5 USD",
        Dimension.WATTS: "700 W",
    }
)


def _unit_table() -> dict[str, tuple[Dimension, float]]:
    table: dict[str, tuple[Dimension, float]] = {
        "USD": (Dimension.USD, 1.0),
        "W": (Dimension.WATTS, 1.0),
        "kW": (Dimension.WATTS, 1e3),
    }
    for prefix, factor in {**_SI, **_BINARY}.items():
        table[f"{prefix}B"] = (Dimension.BYTES, factor)
        table[f"{prefix}B/s"] = (Dimension.BYTES_PER_S, factor)
    for prefix, factor in _SI.items():
        for bits in ("b/s", "bit/s", "bps"):
            table[prefix + bits] = (Dimension.BYTES_PER_S, factor / 8)
        for rate in ("FLOP/s", "FLOPS"):
            table[prefix + rate] = (Dimension.FLOP_PER_S, factor)
    seconds = {
        "s": 1.0,
        "ms": 1e-3,
        "us": 1e-6,
        "\u00b5s": 1e-6,
        "ns": 1e-9,
        "min": 60.0,
        "h": 3600.0,
    }
    table |= {unit: (Dimension.SECONDS, factor) for unit, factor in seconds.items()}
    return table


UNITS: Mapping[str, tuple[Dimension, float]] = MappingProxyType(_unit_table())


def parse_quantity(text: object, dimension: Dimension, *, field: str = "") -> float:
    """The SI value of a text such as `"400 Gb/s"`, checked to be a `dimension`.

    Raises `InputError` that names `field` for a number without a unit, an
    unknown unit and a unit of another dimension. Values are never negative.
    """
    example = EXAMPLES[dimension]
    if not isinstance(text, str):
        rule = f"must be a number with a unit ({dimension})"
        raise InputError.of(field=field, value=text, rule=rule, fix=_advice(text, example))
    match = _QUANTITY.fullmatch(text)
    if match is None:
        rule = f"must be a number and a unit ({dimension})"
        raise InputError.of(field=field, value=text, rule=rule, fix=_advice(text, example))
    number, unit = match.groups()
    unit_dimension, factor = UNITS.get(unit, (None, math.nan))
    if unit_dimension is not dimension:
        rule = (
            f"must be in {dimension}" if unit_dimension else f"must have a known unit ({dimension})"
        )
        raise InputError.of(field=field, value=text, rule=rule, fix=_advice("", example))
    value = float(number) * factor
    if not math.isfinite(value):
        raise InputError.of(
            field=field, value=text, rule="must be finite", fix=_advice("", example)
        )
    return value


def _advice(value: object, example: str) -> str:
    unit = example.split()[1]
    is_number = (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and value.isdigit()
    )
    written = f'"{value} {unit}"' if is_number else f'"{example}"'
    return f"write it with its unit, as in {written}"


def format_rate(per_second: float, unit: str = "B/s") -> str:
    """A rate for people in decimal units, as in `450 GB/s` or `312 TFLOP/s`."""
    steps = [
        (1e15, f"P{unit}"),
        (1e12, f"T{unit}"),
        (1e9, f"G{unit}"),
        (1e6, f"M{unit}"),
        (1e3, f"k{unit}"),
    ]
    return _scaled(per_second, steps, unit)


def _scaled(value: float, steps: list[tuple[float, str]], base: str) -> str:
    for factor, unit in steps:
        if abs(value) >= factor:
            return f"{_three_digits(value / factor)} {unit}"
    return f"{_three_digits(value)} {base}"


def _three_digits(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"
