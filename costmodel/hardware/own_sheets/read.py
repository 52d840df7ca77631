"""Reads the sheets of a cluster's own: chips and links that are not, or otherwise, bundled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeVar

from costmodel.errors import InputError, Violation
from costmodel.hardware.sheets.read import (
    chip_names,
    chip_sheet,
    link_names,
    link_sheet,
    number_of,
)
from costmodel.hardware.values import COLLECTIVES
from costmodel.units import Dimension
from costmodel.wire.read import validate
from haplan_client.schema.sheet import ChipSheet, LinkSheet, Sourced

CHIPS, LINKS = "chips", "links"
"""Folders of sheets."""

MOST_EFFICIENCY = 4.0
"""Of a link's collectives, as in the overrides of a cluster: switches that reduce exceed 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheets:
    """Sheets of a cluster's own, which come before the bundled ones of the same name."""

    chips: Mapping[str, ChipSheet] = field(default_factory=dict[str, ChipSheet])
    links: Mapping[str, LinkSheet] = field(default_factory=dict[str, LinkSheet])

    @property
    def chip_names(self) -> tuple[str, ...]:
        """Names of all chips, own and bundled."""
        return tuple(sorted({*self.chips, *chip_names()}))

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of all links, own and bundled."""
        return tuple(sorted({*self.links, *link_names()}))

    def chip(self, name: str) -> ChipSheet:
        """The sheet of a chip. Raises `UnknownNameError`."""
        return self.chips.get(name) or chip_sheet(name)

    def link(self, name: str) -> LinkSheet:
        """The sheet of a link. Raises `UnknownNameError`."""
        return self.links.get(name) or link_sheet(name)


BUNDLED = Sheets()


def read_sheets(documents: Mapping[str, Mapping[str, Any]], *, name: str) -> Sheets:
    """Sheets as documents by folder (`chips`, `links`) and name.

    Raises `InputError` with every violation, each under `name` and the path of its sheet.
    """
    chips: dict[str, ChipSheet] = {}
    links: dict[str, LinkSheet] = {}
    violations: list[Violation] = []
    for folder, stem, document in _entries(documents):
        place = f"{name}/{folder}/{stem}"
        try:
            if folder == CHIPS:
                chips[stem] = _checked(validate(ChipSheet, document, name=place), place)
            else:
                links[stem] = _checked(validate(LinkSheet, document, name=place), place)
        except InputError as error:
            violations += error.violations
    if violations:
        raise InputError(violations)
    return Sheets(chips=chips, links=links)


def _entries(documents: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (folder, stem, document)
        for folder in (CHIPS, LINKS)
        for stem, document in documents.get(folder, {}).items()
    ]


AnySheet = TypeVar("AnySheet", ChipSheet, LinkSheet)


def _checked(sheet: AnySheet, place: str) -> AnySheet:
    """The sheet, whose numbers have the units of their fields. Raises `InputError`."""
    violations: list[Violation] = []
    missing = [
        op for op in COLLECTIVES if isinstance(sheet, LinkSheet) and op not in sheet.efficiency
    ]
    if missing:
        rule, fix = "must have every collective", f"add {', '.join(missing)}"
        value = list(COLLECTIVES)
        violations.append(Violation(field=f"{place}/efficiency", value=value, rule=rule, fix=fix))
    for path, number, dimension in _quantities(sheet):
        violations += _number_faults(f"{place}/{path}", number, dimension)
    if violations:
        raise InputError(violations)
    return sheet


def _number_faults(field: str, number: Sourced, dimension: Dimension | None) -> list[Violation]:
    """What is wrong with one number: its unit, or a value that no chip or link can have."""
    try:
        value = number_of(number, dimension)
    except InputError as error:
        return [replace(v, field=field) for v in error.violations]
    except ValueError:
        rule, fix = "must be a plain number, unknown or unsupported", "write a fraction"
        return [Violation(field=field, value=number.value, rule=rule, fix=fix)]
    if value is None:
        return []
    most = MOST_EFFICIENCY if "/efficiency/" in field else 1.0 if dimension is None else inf
    if 0.0 < value <= most or (value == 0.0 and dimension is Dimension.SECONDS):
        return []
    rule = "must be above 0" if most == inf else f"must be above 0 and at most {most:g}"
    return [Violation(field=field, value=number.value, rule=rule, fix="correct it")]


def _quantities(sheet: ChipSheet | LinkSheet) -> list[tuple[str, Sourced, Dimension | None]]:
    if isinstance(sheet, LinkSheet):
        shares = [(f"efficiency/{op}", number, None) for op, number in sheet.efficiency.items()]
        return [
            ("bandwidth", sheet.bandwidth, Dimension.BYTES_PER_S),
            ("latency", sheet.latency, Dimension.SECONDS),
            *shares,
        ]
    peaks = [(f"peak/{p}", number, Dimension.FLOP_PER_S) for p, number in sheet.peak.items()]
    shares = [(f"matmul_fraction/{p}", number, None) for p, number in sheet.matmul_fraction.items()]
    kernels = [(f"attention_fraction/{k}", n, None) for k, n in sheet.attention_fraction.items()]
    return [
        ("memory", sheet.memory, Dimension.BYTES),
        ("memory_bandwidth", sheet.memory_bandwidth, Dimension.BYTES_PER_S),
        ("memory_fraction", sheet.memory_fraction, None),
        *peaks,
        *shares,
        *kernels,
    ]
