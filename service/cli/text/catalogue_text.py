"""Chips and clusters as tables."""

from typing import Any

from rich.console import Group
from rich.table import Table

from service.cli.text.quantities import GIB
from service.cli.text.tables import table

Document = dict[str, Any]

TERA = 1e12
UNKNOWN = "?"


def show_chips(document: Document) -> Table:
    """All chips, one a row; a question mark is a number nobody published."""
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
    return table(title, columns, rows)


def peak_text(chip: Document, precision: str) -> str:
    """Dense peak in a precision; a dash where the chip cannot compute in it."""
    if precision in chip["unsupported"]:
        return "-"
    return scaled(chip["peak_flop_per_s"].get(precision), TERA)


def scaled(value: float | None, unit: float) -> str:
    """A number in a unit, or that nobody published it."""
    return UNKNOWN if value is None else f"{value / unit:,.4g}"


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
