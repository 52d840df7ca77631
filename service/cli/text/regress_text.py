"""The verdicts of a regression run as a table."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from service.cli.text.quantities import seconds
from service.cli.text.tables import table

Document = dict[str, Any]


def show_report(report: Document) -> RenderableType:
    """One row a case, and the verdict over all."""
    rows = [case_row(case) for case in report["cases"]]
    failed = sum(not case["passed"] for case in report["cases"])
    verdict = (
        Text(f"{failed} of {len(rows)} cases got worse", style="bold red")
        if failed
        else Text(f"none of {len(rows)} cases got worse", style="bold green")
    )
    return Group(table("Regression", ("case", ">before", ">after", ">change", ""), rows), verdict)


def case_row(case: Document) -> tuple[str, str, str, str, Text]:
    """One case."""
    change = "" if case["relative"] is None else f"{100 * case['relative']:+.2f} %"
    verdict = Text(case["verdict"], style="green" if case["passed"] else "bold red")
    return case["name"], time_text(case["before_s"]), time_text(case["after_s"]), change, verdict


def time_text(value: float | None) -> str:
    """A step time, or a dash where there is none."""
    return "-" if value is None else seconds(value)
