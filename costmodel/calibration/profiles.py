"""Profiles as documents: bundled sheets with the numbers that were measured in their place."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, cast

from costmodel.calibration.measurements import Number, Residuals

Document = dict[str, Any]

CHIPS, LINKS, SOFTWARE = "chips", "links", "software"
"""Folders of profiles."""

SURE, FAIR = 0.05, 0.15
"""A number is of high or medium confidence up to this relative standard deviation."""

FEWEST = 4
"""Points below which no number is of high confidence."""

FLOP_PER_S, BYTES_PER_S, SECONDS = "TFLOP/s", "GB/s", "us"
_FACTORS = {FLOP_PER_S: 1e12, BYTES_PER_S: 1e9, SECONDS: 1e-6}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One number that a profile states. name: as in the sheet, with its key. before: what the
    bundled profile says, None where it says nothing. relative_sd: of its logarithm."""

    name: str
    value: float
    unit: str
    before: float | None
    relative_sd: float
    points: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile to be written. kept: numbers that stay as bundled; remarks: what to know."""

    folder: str
    name: str
    document: Document
    numbers: tuple[Stated, ...]
    kept: tuple[str, ...]
    residuals: Mapping[str, Residuals] = field(default_factory=dict[str, Residuals])
    errors: Document = field(default_factory=dict[str, Any])
    remarks: tuple[str, ...] = ()


def quantity(value: float, unit: str) -> str:
    """A number with its unit, as sheets have it, in four digits."""
    return f"{float(f'{value / _FACTORS[unit]:.4g}'):.10g} {unit}"


def sourced(stated: Stated, source: str) -> Document:
    """A number as sheets have it: value, source, confidence and note."""
    value = quantity(stated.value, stated.unit) if stated.unit else float(f"{stated.value:.4g}")
    note = f"{stated.points} points, sd of the logarithm {stated.relative_sd:.2g}"
    return {
        "value": value,
        "source": source,
        "confidence": confidence(stated),
        "note": f"{note}; {stated.note}" if stated.note else note,
    }


def confidence(number: Stated | Number) -> str:
    """How far a number is to be trusted."""
    if number.relative_sd <= SURE and number.points >= FEWEST:
        return "high"
    return "medium" if number.relative_sd <= FAIR else "low"


def with_numbers(base: Document, numbers: Mapping[str, Stated], source: str) -> Document:
    """The sheet with these numbers in place of its own, by path (`efficiency/all_reduce`)."""
    sheet = deepcopy(base)
    for path, stated in numbers.items():
        *inner, last = path.split("/")
        target = sheet
        for part in inner:
            target = target.setdefault(part, {})
        target[last] = sourced(stated, source)
    return sheet


def kept_numbers(
    base: Document, fields: tuple[str, ...], stated: Mapping[str, Stated]
) -> list[str]:
    """Paths of the sheet's numbers that were not measured and are known."""
    paths: list[str] = []
    for name in fields:
        entry: object = base.get(name)
        if isinstance(entry, dict) and "value" not in entry:
            inner = cast("Document", entry)
            paths += [f"{name}/{key}" for key, one in inner.items() if _known(one)]
        elif _known(cast("object", entry)):
            paths.append(name)
    return [path for path in paths if path not in stated]


def _known(entry: object) -> bool:
    value = cast("Document", entry).get("value") if isinstance(entry, dict) else entry
    return value not in (None, "unknown", "unsupported")
