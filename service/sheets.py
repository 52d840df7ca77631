"""The sheets behind a chip or a cluster: every number with unit, source and confidence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from costmodel.errors import UnknownNameError
from costmodel.hardware.assumptions import assumptions_for, whole
from costmodel.hardware.own_sheets.read import BUNDLED, Sheets
from costmodel.hardware.read import load_cluster, own_sheets
from costmodel.hardware.values import Cluster
from haplan_client.schema.sheet import ChipSheet, LinkSheet, Sourced
from service.catalogue import cluster_document

Document = dict[str, Any]

WRITTEN = re.compile(r"([0-9.]+)\s*([A-Za-z].*)")
"""A number and its unit."""
FRACTION = "fraction"
"""The unit of a number without one."""
CHIP_FIELDS = ("memory", "memory_bandwidth", "memory_fraction", "peak", "matmul_fraction", "power")
LINK_FIELDS = ("bandwidth", "latency", "efficiency")


def chip_document(name: str, sheets: Sheets = BUNDLED) -> Document:
    """One chip. Raises UnknownNameError."""
    if name not in sheets.chip_names:
        raise UnknownNameError(kind="chip", name=name, known=sheets.chip_names)
    sheet = sheets.chip(name)
    facts = sheet.model_dump(mode="json", exclude=set(CHIP_FIELDS))
    return {"name": name, **facts, "numbers": [*_numbers(sheet, CHIP_FIELDS)]}


def link_document(name: str, sheets: Sheets = BUNDLED) -> Document:
    """One link. Raises UnknownNameError."""
    sheet = sheets.link(name)
    facts = sheet.model_dump(mode="json", exclude=set(LINK_FIELDS))
    return {"name": name, **facts, "numbers": [*_numbers(sheet, LINK_FIELDS)]}


def cluster_sheets(source: str | Mapping[str, object]) -> Document:
    """A cluster, bundled, a file or a document, with the sheets of all that it is made of."""
    cluster = load_cluster(source)
    own = own_sheets(cluster.document)
    return {
        **cluster_document(cluster),
        "chip_sheets": [chip_document(chip, own) for chip in sorted(cluster.chip_counts())],
        "link_sheets": [link_document(link, own) for link in _links(cluster)],
        "own_numbers": dict(_own_numbers(cluster)),
        "assumptions": list(assumptions_for(cluster, whole(cluster))),
    }


def number_document(name: str, number: Sourced) -> Document:
    """One number as it is published; without a value it is `unknown` or `unsupported`."""
    found = WRITTEN.fullmatch(number.value) if isinstance(number.value, str) else None
    value, unit = found.groups() if found else (number.value, None)
    missing = value in ("unknown", "unsupported")
    return {
        "name": name,
        "value": None if missing else float(value),
        "unit": None if missing else unit or FRACTION,
        "state": value if missing else "known",
        **number.model_dump(mode="json", exclude={"value"}),
    }


def _numbers(sheet: ChipSheet | LinkSheet, fields: Sequence[str]) -> Iterator[Document]:
    for name in fields:
        found: Sourced | dict[str, Sourced] = getattr(sheet, name)
        if isinstance(found, Sourced):
            yield number_document(name, found)
        else:
            yield from (number_document(f"{name}/{key}", item) for key, item in found.items())


def _links(cluster: Cluster) -> list[str]:
    pools = cluster.pools
    names = {pool.scale_up.name for pool in pools} | {pool.scale_out.name for pool in pools}
    return sorted(names | {between.link.name for between in cluster.between})


def _own_numbers(cluster: Cluster) -> Iterator[tuple[str, object]]:
    """What the cluster's document says in place of the sheets, by its place there."""
    for part in ("pools", "between_islands"):
        items = cast("list[Mapping[str, object]]", cluster.document.get(part, []))
        for index, item in enumerate(items):
            for name in ("overrides", "measured"):
                yield from _leaves(f"/{part}/{index}/{name}", item.get(name))


def _leaves(place: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, object]", value).items():
            yield from _leaves(f"{place}/{name}", inner)
    elif value is not None:
        yield place, value
