"""Reads the bundled sheets and turns them, with an owner's overrides, into values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from costmodel.errors import InputError, UnknownNameError, Violation
from costmodel.hardware.class_defaults import SCALE_UP_BYTES_PER_S, STATED_SHARE, fill_chip
from costmodel.hardware.values import COLLECTIVES, Assumption, Chip, Link, unknown_number
from costmodel.safe_document import load_document
from costmodel.units import Dimension, format_rate, parse_quantity
from costmodel.wire.read import validate
from haplan_client.schema.cluster import ChipOverrides, LinkOverrides
from haplan_client.schema.sheet import ChipSheet, LinkSheet, Sourced

CLASS_DEFAULT = "class default"
"""How the source of a number begins that is the default of its class and not measured."""


def chip_names() -> tuple[str, ...]:
    """Names of the bundled chips, sorted."""
    return sheet_names("chips")


def link_names() -> tuple[str, ...]:
    """Names of the bundled links, sorted."""
    return sheet_names("links")


def sheet_names(folder: str) -> tuple[str, ...]:
    """File stems in one folder of the bundled profiles, sorted."""
    entries = files("cluster_profiles").joinpath(folder).iterdir()
    stems = (entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml"))
    return tuple(sorted(stems))


def sheet_document(folder: str, name: str) -> dict[str, Any]:
    """The bundled document `folder/name.yaml`."""
    path = files("cluster_profiles").joinpath(folder, f"{name}.yaml")
    return load_document(path.read_bytes())


@cache
def chip_sheet(name: str) -> ChipSheet:
    """The sheet of a chip. Raises `UnknownNameError`."""
    if name not in chip_names():
        raise UnknownNameError(kind="chip", name=name, known=chip_names())
    return validate(ChipSheet, sheet_document("chips", name), name=f"chips/{name}.yaml")


@cache
def link_sheet(name: str) -> LinkSheet:
    """The sheet of a link. Raises `UnknownNameError`."""
    if name not in link_names():
        raise UnknownNameError(kind="link", name=name, known=link_names())
    return validate(LinkSheet, sheet_document("links", name), name=f"links/{name}.yaml")


def load_chip(name: str, *, class_defaults: bool = False) -> Chip:
    """A bundled chip. Unknown numbers are `None` unless class defaults are asked for."""
    return build_chip(name, ChipOverrides(), class_defaults=class_defaults)


def load_link(name: str, *, class_defaults: bool = False) -> Link:
    """A bundled link. Raises `UnknownNumberError` if its bandwidth is unknown, unless class
    defaults are asked for."""
    return build_link(name, LinkOverrides(), part="scale_up", class_defaults=class_defaults)


def usual_scale_up(name: str) -> str:
    """The name of the link that usually joins chips of this kind in a node."""
    return chip_sheet(name).scale_up.link


def build_chip(
    name: str,
    overrides: ChipOverrides,
    *,
    class_defaults: bool,
    field: str = "",
    sheet: ChipSheet | None = None,
) -> Chip:
    """The chip with overrides and, if asked for, class defaults.

    `field` is the path of the overrides in the user's document, `sheet` what stands for the
    bundled one.
    """
    sheet = sheet or chip_sheet(name)
    own = _Overrides(field)
    own_peaks = {
        precision: own.quantity(text, Dimension.FLOP_PER_S, f"peak/{precision}")
        for precision, text in overrides.peak.items()
    }
    memory = own.quantity(overrides.memory, Dimension.BYTES, "memory")
    bandwidth = own.quantity(overrides.memory_bandwidth, Dimension.BYTES_PER_S, "memory_bandwidth")
    own.check()
    unsupported = {p for p, number in sheet.peak.items() if number.value == "unsupported"}
    chip = Chip(
        name=name,
        title=sheet.title,
        vendor=sheet.vendor,
        architecture=sheet.architecture or name,
        memory_bytes=memory or number_of(sheet.memory, Dimension.BYTES),
        memory_bytes_per_s=bandwidth or number_of(sheet.memory_bandwidth, Dimension.BYTES_PER_S),
        memory_fraction=overrides.memory_fraction or number_of(sheet.memory_fraction),
        peak_flop_per_s={**_table(sheet.peak, Dimension.FLOP_PER_S), **own_peaks},
        matmul_fraction={**_table(sheet.matmul_fraction), **overrides.matmul_fraction},
        attention_fraction=_table(sheet.attention_fraction),
        unsupported=frozenset(unsupported - own_peaks.keys()),
        confidence=sheet.confidence,
        sources=tuple(sheet.sources),
    )
    return fill_chip(chip) if class_defaults else chip


def build_link(
    name: str,
    overrides: LinkOverrides,
    *,
    part: str,
    class_defaults: bool,
    field: str = "",
    sheet: LinkSheet | None = None,
) -> Link:
    """The link with overrides and, if asked for, class defaults.

    `part` is what the overrides of this link are called in a pool. Raises
    `UnknownNumberError` if the bandwidth stays unknown.
    """
    sheet = sheet or link_sheet(name)
    own = _Overrides(field)
    own_bandwidth = own.quantity(overrides.bandwidth, Dimension.BYTES_PER_S, "bandwidth")
    latency = own.quantity(overrides.latency, Dimension.SECONDS, "latency")
    own.check()
    bandwidth = own_bandwidth or number_of(sheet.bandwidth, Dimension.BYTES_PER_S)
    assumed = _class_defaults(sheet, overrides)
    if bandwidth is None:
        if not class_defaults:
            raise unknown_number(f"links/{name}.yaml", "bandwidth", part, "100 GB/s")
        bandwidth = _default_bandwidth(sheet)
        assumed.append(Assumption(field="bandwidth", value=format_rate(bandwidth)))
    efficiency = {**_table(sheet.efficiency), **overrides.efficiency}
    return Link(
        name=name,
        kind=sheet.kind,
        fabric=sheet.fabric,
        transport=sheet.transport,
        topology=overrides.topology or sheet.topology,
        bytes_per_s=bandwidth,
        latency_s=latency or number_of(sheet.latency, Dimension.SECONDS) or 0.0,
        efficiency={op: efficiency[op] or 0.0 for op in COLLECTIVES},
        multicast=sheet.multicast if overrides.multicast is None else overrides.multicast,
        ports=overrides.ports or sheet.ports,
        assumed=tuple(assumed),
    )


def number_of(number: Sourced, dimension: Dimension | None = None) -> float | None:
    """A number of a sheet in SI units, or None if it is unknown or unsupported."""
    if number.value in ("unknown", "unsupported"):
        return None
    if dimension is not None:
        return parse_quantity(number.value, dimension)
    return float(number.value)


class _Overrides:
    """Parses the quantities of one set of overrides and keeps every violation."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._violations: list[Violation] = []

    def quantity(self, text: str | None, dimension: Dimension, name: str) -> float | None:
        field = f"{self._field}/{name}"
        if text is None:
            return None
        try:
            value = parse_quantity(text, dimension, field=field)
        except InputError as error:
            self._violations += error.violations
            return None
        if value == 0:
            rule, fix = "must be more than zero", "leave it out to keep the published number"
            self._violations.append(Violation(field=field, value=text, rule=rule, fix=fix))
        return value

    def check(self) -> None:
        if self._violations:
            raise InputError(self._violations)


def _table(
    numbers: Mapping[Any, Sourced], dimension: Dimension | None = None
) -> dict[str, float | None]:
    return {str(key): number_of(number, dimension) for key, number in numbers.items()}


def _default_bandwidth(sheet: LinkSheet) -> float:
    if sheet.bandwidth.stated is None:
        return SCALE_UP_BYTES_PER_S
    return STATED_SHARE * parse_quantity(sheet.bandwidth.stated, Dimension.BYTES_PER_S)


def _class_defaults(sheet: LinkSheet, own: LinkOverrides) -> list[Assumption]:
    assumed = [
        Assumption(field="efficiency", key=op, value=f"{number.value}")
        for op, number in sheet.efficiency.items()
        if op not in own.efficiency and _is_class_default(number)
    ]
    if own.latency is None and _is_class_default(sheet.latency):
        assumed.append(Assumption(field="latency", value=str(sheet.latency.value)))
    return assumed


def _is_class_default(number: Sourced) -> bool:
    return (number.source or "").startswith(CLASS_DEFAULT)
