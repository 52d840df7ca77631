"""Chips and clusters as tables."""

from typing import Any

from rich.table import Table

from service.cli.text.quantities import gibibytes, rate
from service.cli.text.tables import table

Document = dict[str, Any]

UNKNOWN = "?"


def show_chips(document: Document) -> Table:
    """All chips, one a row; a question mark is a number nobody published."""
    columns = ("chip", "vendor", ">memory", ">memory bandwidth", ">bf16", ">fp8", "confidence")
    rows = [
        (
            chip["name"],
            chip["vendor"],
            UNKNOWN if chip["memory_bytes"] is None else gibibytes(chip["memory_bytes"]),
            rate_or_unknown(chip["memory_bytes_per_s"], "B/s"),
            peak_text(chip, "bf16"),
            peak_text(chip, "fp8"),
            chip["confidence"],
        )
        for chip in document["items"]
    ]
    return table("Chips", columns, rows)


def peak_text(chip: Document, precision: str) -> str:
    """Dense peak in a precision; a dash where the chip cannot compute in it."""
    if precision in chip["unsupported"]:
        return "-"
    return rate_or_unknown(chip["peak_flop_per_s"].get(precision), "FLOP/s")


def rate_or_unknown(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else rate(value, unit)


def show_clusters(document: Document) -> Table:
    """All clusters, one row a pool."""
    columns = ("cluster", ">chips", "island", "pool", ">nodes", "chip", "scale up", "scale out")
    rows = [
        (
            cluster["name"] if first else "",
            f"{cluster['num_chips']:,}" if first else "",
            pool["island"],
            pool["name"],
            f"{pool['nodes']:,} x {pool['chips_per_node']}",
            pool["chip"],
            pool["scale_up"],
            f"{pool['scale_out']} x {pool['nics']}",
        )
        for cluster in document["items"]
        for first, pool in flagged(cluster["pools"])
    ]
    return table("Clusters", columns, rows)


def flagged(pools: list[Document]) -> list[tuple[bool, Document]]:
    """Each pool with whether it is the first."""
    return [(number == 0, pool) for number, pool in enumerate(pools)]
