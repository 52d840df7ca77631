"""Tables of the fitted constants."""

from benchmarks.accuracy_page.cells import NONE, number, table
from benchmarks.accuracy_page.time_tables import Findings


def pooled(findings: Findings) -> str:
    """The default profile's constants, and the stacks' own."""
    head = [
        "constant",
        "default",
        "sd of its logarithm",
        "prior (sd)",
        "over the stacks",
        "sd between them",
    ]
    rows = [
        [
            f"`{one['name']}`",
            number(one["value"]),
            f"{one['sd']:.2f}",
            f"{number(one['prior'])} ({one['spread']:.2f})",
            _range([entry["value"] for entry in one["stacks"].values()]),
            f"{one['between']:.2f}",
        ]
        for one in findings["constants"]
    ]
    return table(head, rows)


def _range(values: list[float]) -> str:
    return f"{number(min(values))} to {number(max(values))}" if values else NONE


def stacks(findings: Findings) -> str:
    """Every stack's constants, each with the standard deviation of its logarithm."""
    constants = findings["constants"]
    names = sorted({stack for one in constants for stack in one["stacks"]})
    rows = [[name, *(_entry(one["stacks"].get(name)) for one in constants)] for name in names]
    return table(["stack", *(f"`{one['name']}`" for one in constants)], rows)


def _entry(entry: Findings | None) -> str:
    return f"{number(entry['value'])} ({entry['sd']:.2f})" if entry else NONE
