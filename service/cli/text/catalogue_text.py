"""Chips and clusters as tables."""

from collections.abc import Callable
from typing import Any, cast

import yaml
from rich.console import Group
from rich.table import Table
from rich.text import Text

from service.cli.text.quantities import GIB
from service.cli.text.tables import table

Document = dict[str, Any]

TERA = 1e12
UNKNOWN = "?"


def show_chips(document: Document) -> Group:
    """All chips, one a row, and what its signs mean."""
    columns = ("=chip", "vendor", ">memory", ">bandwidth", ">bf16", ">fp8", "=confidence")
    rows = [
        (
            chip["name"],
            chip["vendor"],
            scaled(chip["memory_bytes"], GIB),
            scaled(chip["memory_bytes_per_s"], TERA),
            peak_text(chip, "bf16"),
            peak_text(chip, "fp8"),
            chip["confidence"],
        )
        for chip in document["items"]
    ]
    title = "Chips: memory in GiB, its bandwidth in TB/s, dense peaks in TFLOP/s"
    legend = (
        f"{UNKNOWN}: nobody published it (give it in the cluster's file); -: the chip cannot "
        "compute in it; confidence: in the sheet as a whole (`haplan chips NAME` shows it)"
    )
    return Group(table(title, columns, rows), Text(legend, style="dim"))


def peak_text(chip: Document, precision: str) -> str:
    """Dense peak in a precision; a dash where the chip cannot compute in it."""
    if precision in chip["unsupported"]:
        return "-"
    return scaled(chip["peak_flop_per_s"].get(precision), TERA)


def scaled(value: float | None, unit: float) -> str:
    """A number in a unit, or that nobody published it."""
    return UNKNOWN if value is None else f"{value / unit:,.4g}"


def show_links(document: Document) -> Group:
    """All links, one a row."""
    columns = ("=link", ">bandwidth", ">latency", "title")
    rows = [
        (link["name"], number_text(link, "bandwidth"), number_text(link, "latency"), link["title"])
        for link in document["items"]
    ]
    legend = f"Bandwidth in one direction, per chip or NIC; {UNKNOWN}: nobody published it"
    return Group(table("Links", columns, rows), Text(legend, style="dim"))


def number_text(sheet: Document, name: str) -> str:
    """A number of a sheet with its unit."""
    number = next(n for n in sheet["numbers"] if n["name"] == name)
    return UNKNOWN if number["value"] is None else f"{number['value']:,.6g} {number['unit']}"


def show_document(document: Document) -> Text:
    """A cluster's document as its file."""
    dump = cast("Callable[..., str]", vars(yaml)["safe_dump"])
    return Text(dump(document, sort_keys=False, width=100).rstrip())


def show_clusters(document: Document) -> Group:
    """A table for each cluster, one row a pool."""
    return Group(*(cluster_table(cluster) for cluster in document["items"]))


def cluster_table(cluster: Document) -> Table:
    """One cluster."""
    columns = ("island/pool", ">nodes", "=chip", "=scale up", "=scale out")
    rows = [
        (
            f"{pool['island']}/{pool['name']}",
            f"{pool['nodes']:,} x {pool['chips_per_node']}",
            pool["chip"],
            pool["scale_up"],
            f"{pool['scale_out']} x {pool['nics']}",
        )
        for pool in cluster["pools"]
    ]
    return table(f"{cluster['name']}: {cluster['num_chips']:,} chips", columns, rows)
