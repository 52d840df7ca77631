"""Reads clusters: a bundled name, a file, or a document already parsed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from costmodel.errors import InputError, UnknownNameError, Violation
from costmodel.hardware.faults import Faults
from costmodel.hardware.islands.read import read_between
from costmodel.hardware.own_sheets.read import BUNDLED, Sheets, read_sheets
from costmodel.hardware.pools.read import Numbers, check_names, read_pool
from costmodel.hardware.sheets.read import (
    chip_names,
    link_names,
    load_chip,
    load_link,
    sheet_document,
    sheet_names,
    usual_scale_up,
)
from costmodel.hardware.values import Cluster
from costmodel.safe_document import load_document
from costmodel.wire.read import validate
from haplan_client.schema.cluster import ClusterDocument

FOLDERS = ("chips", "links")

__all__ = [
    "chip_names",
    "cluster_names",
    "cluster_source",
    "link_names",
    "load_chip",
    "load_cluster",
    "load_link",
    "own_sheets",
    "usual_scale_up",
]


def cluster_names() -> tuple[str, ...]:
    """Names of the bundled clusters, sorted."""
    return sheet_names("clusters")


def load_cluster(source: str | Path | Mapping[str, object]) -> Cluster:
    """The cluster behind a bundled name, a path of a YAML or JSON file, or a parsed document.

    Raises `InputError` with every violation at once: unknown fields, names, units and numbers,
    islands that nothing joins. Raises `UnsafeDocumentError` for a file refused unread.
    """
    raw = cluster_source(source)
    sheets, unsound = _own_sheets(raw)
    unknown = [*unsound, *_unknown_names(raw, sheets)]
    try:
        document = validate(ClusterDocument, raw)
    except InputError as error:
        raise InputError([*error.violations, *unknown]) from None
    faults = Faults(unknown)
    numbers = Numbers(sheets=sheets, class_defaults=document.class_defaults)
    pools = [
        read_pool(pool, f"/pools/{i}", faults, numbers=numbers)
        for i, pool in enumerate(document.pools)
    ]
    check_names(document.pools, faults)
    between = read_between(document, faults, numbers)
    faults.check()
    return Cluster(
        name=document.name,
        pools=tuple(pool for pool in pools if pool is not None),
        between=between,
        document=document.model_dump(mode="json", exclude_unset=True, exclude_none=True),
    )


def own_sheets(document: Mapping[str, object]) -> Sheets:
    """The sheets that a cluster's document holds. Raises `InputError` for faulty ones."""
    sheets, faults = _own_sheets(document)
    if faults:
        raise InputError(faults)
    return sheets


def _own_sheets(raw: Mapping[str, object]) -> tuple[Sheets, list[Violation]]:
    """Sound sheets, or what is wrong with them; where they have no shape at all, the schema says
    so."""
    given = raw.get("sheets")
    if not isinstance(given, dict):
        return BUNDLED, []
    shaped = {
        folder: {str(name): sheet for name, sheet in _mapping(own).items() if _mapping(sheet)}
        for folder, own in _mapping(cast("object", given)).items()
    }
    try:
        return read_sheets(shaped, name="/sheets"), []
    except InputError as error:
        return BUNDLED, [*error.violations]


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def cluster_source(source: str | Path | Mapping[str, object]) -> Mapping[str, object]:
    """The document behind a bundled name, a path, or itself."""
    if isinstance(source, Mapping):
        return source
    if isinstance(source, str) and source in cluster_names():
        return sheet_document("clusters", source)
    if isinstance(source, Path):
        return load_document(source)
    if "/" in source or "." in source or _is_file(source):
        return load_document(Path(source))
    raise UnknownNameError(kind="cluster", name=source, known=cluster_names())


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):
        return False


def _unknown_names(raw: Mapping[str, object], sheets: Sheets) -> list[Violation]:
    """Violations for the chips and links that are named but not known, whatever else is wrong."""
    named: list[tuple[str, str, object]] = []
    for path, pool in _entries(raw, "pools"):
        named.append(("chip", f"{path}/chip", pool.get("chip")))
        named.append(("link", f"{path}/scale_up", pool.get("scale_up")))
        for inner, scale_out in _entries(pool, "scale_out", path):
            named.append(("link", f"{inner}/link", scale_out.get("link")))
    for path, between in _entries(raw, "between_islands"):
        named.append(("link", f"{path}/link", between.get("link")))
    named_here = {folder: _mapping(_mapping(raw.get("sheets")).get(folder)) for folder in FOLDERS}
    known = {
        "chip": (*sheets.chip_names, *named_here["chips"]),
        "link": (*sheets.link_names, *named_here["links"]),
    }
    return [
        violation
        for kind, field, name in named
        if isinstance(name, str) and name not in known[kind]
        for violation in UnknownNameError(
            kind=kind, name=name, known=known[kind], field=field
        ).violations
    ]


def _entries(
    raw: Mapping[str, object], key: str, path: str = ""
) -> list[tuple[str, Mapping[str, object]]]:
    value = raw.get(key)
    if isinstance(value, dict):
        return [(f"{path}/{key}", cast("dict[str, object]", value))]
    if not isinstance(value, list):
        return []
    items = enumerate(cast("list[object]", value))
    return [
        (f"{path}/{key}/{i}", cast("dict[str, object]", item))
        for i, item in items
        if isinstance(item, dict)
    ]
