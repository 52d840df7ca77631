"""A link's sheet from collectives that were measured over it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costmodel.calibration.links import LinkFit, Setting, fit_link
from costmodel.calibration.measurements import CollectivePoint, Number
from costmodel.calibration.profiles import (
    BYTES_PER_S,
    LINKS,
    SECONDS,
    Profile,
    Stated,
    kept_numbers,
    quantity,
    with_numbers,
)
from costmodel.errors import InputError, Violation
from costmodel.hardware.sheets.read import sheet_document
from costmodel.hardware.values import COLLECTIVES, Link
from costmodel.model.placement import Collective
from costmodel.network.collectives import wire_share

FIELDS = ("bandwidth", "latency", "efficiency")

ABOVE = 2.5
"""A bus bandwidth above this multiple of the link's rate is refused. Switches that reduce reach
1.1 of it (NVLink 4 with SHARP) and could reach 2."""

CONVENTION = (
    "bandwidths are bus bandwidths: size / time x 2 (n - 1)/n for an all-reduce, x (n - 1)/n else"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLink:
    """A link without a bundled sheet: the best bus bandwidth stands for its rate."""

    name: str
    title: str
    fabric: str
    compiled: str


def link_profile(points: Sequence[CollectivePoint], setting: Setting, source: str) -> Profile:
    """The sheet of a bundled link with the measured latency and efficiencies.

    Raises InputError where the bandwidth is beyond the link's.
    """
    fit = fit_link(points, setting)
    _check(fit, setting, points)
    link = setting.link
    numbers = _numbers(fit, link)
    base = sheet_document(LINKS, link.name)
    return Profile(
        folder=LINKS,
        name=link.name,
        document=with_numbers(base, numbers, source),
        numbers=tuple(numbers.values()),
        kept=tuple(kept_numbers(base, FIELDS, numbers)),
        residuals={"collectives": fit.residuals},
        remarks=_remarks(fit, len(points)),
    )


def new_link_profile(points: Sequence[CollectivePoint], new: NewLink, source: str) -> Profile:
    """A sheet whose rate is the best measured bus bandwidth."""
    best = max(map(bus_bytes_per_s, points))
    link = Link(
        name=new.name,
        kind="scale-up",
        transport="scale-up",
        topology="switch",
        bytes_per_s=best,
        latency_s=5e-6,
        efficiency=dict.fromkeys(COLLECTIVES, 1.0),
    )
    fit = fit_link(points, Setting(link=link, scale_up=True))
    numbers = _numbers(fit, replace(link, efficiency={}), known=False)
    base = _bare(new, best, source)
    return Profile(
        folder=LINKS,
        name=new.name,
        document=with_numbers(base, numbers, source),
        numbers=tuple(numbers.values()),
        kept=tuple(kept_numbers(base, FIELDS[1:], numbers)),
        residuals={"collectives": fit.residuals},
        remarks=(
            "no sheet is bundled for this link: the best bus bandwidth stands for its rate",
            *_remarks(fit, len(points)),
        ),
    )


def _bare(new: NewLink, bytes_per_s: float, source: str) -> dict[str, Any]:
    """The sheet without what is measured."""
    return {
        "title": new.title,
        "kind": "scale-up",
        "fabric": new.fabric,
        "transport": "scale-up",
        "topology": "switch",
        "compiled": new.compiled,
        "bandwidth": {
            "value": quantity(bytes_per_s, BYTES_PER_S),
            "source": source,
            "confidence": "medium",
            "note": "best measured bus bandwidth",
        },
        "latency": {"value": "5 us", "source": "class default", "confidence": "low"},
        "efficiency": {
            op: {"value": 0.7, "source": "class default", "confidence": "low"} for op in COLLECTIVES
        },
    }


def bus_bytes_per_s(point: CollectivePoint) -> float:
    """``size / time x f (n - 1)/n``, as nccl-tests prints it."""
    return _share(point.collective, point.ranks) * point.payload_bytes / point.seconds


def _share(collective: Collective, ranks: int) -> float:
    return float(wire_share(collective, np.asarray(ranks, dtype=np.float64)))


def _numbers(fit: LinkFit, link: Link, *, known: bool = True) -> dict[str, Stated]:
    numbers: dict[str, Stated] = {}
    if fit.latency is not None:
        before = link.latency_s if known else None
        numbers["latency"] = _stated("latency", fit.latency, SECONDS, before, "per message and hop")
    for op, number in fit.efficiency.items():
        name = f"efficiency/{op.value}"
        bus = quantity(fit.bus_bytes_per_s[op], BYTES_PER_S)
        before = link.efficiency.get(op.value)
        numbers[name] = _stated(name, number, "", before, f"bus bandwidth {bus}")
    return numbers


def _stated(name: str, number: Number, unit: str, before: float | None, note: str) -> Stated:
    return Stated(
        name=name,
        value=number.value,
        unit=unit,
        before=before,
        relative_sd=number.relative_sd,
        points=number.points,
        note=note,
    )


def _check(fit: LinkFit, setting: Setting, points: Sequence[CollectivePoint]) -> None:
    faults = [
        Violation(
            field=next(p.where for p in points if p.collective is op),
            value=quantity(fit.bus_bytes_per_s[op], BYTES_PER_S),
            rule=f"bus bandwidth of {op.value} must not exceed {ABOVE:g} times what "
            f"{setting.link.name} gives one chip",
            fix="name the link that it ran over, and how many NICs a node has",
        )
        for op, number in fit.efficiency.items()
        if number.value > ABOVE
    ]
    if faults:
        raise InputError(faults)


def _remarks(fit: LinkFit, points: int) -> tuple[str, ...]:
    remarks = [CONVENTION]
    if fit.used < points:
        remarks.append(f"fitted to the {fit.used} of {points} points from 4 MiB on")
    if fit.latency is None:
        remarks.append("latency stays as it was: too few small messages tell it")
    return tuple(remarks)
