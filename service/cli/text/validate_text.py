"""What an execution showed, as text."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from service.cli.text.tables import facts, remarks

Document = dict[str, Any]


def show_validation(report: Document) -> RenderableType:
    """The verdict, then what was compared."""
    traffic = report["traffic_bytes"]
    verdict = (
        Text("the plan runs and computes what one process computes", style="bold green")
        if report["ok"]
        else Text("the execution differs from what the plan promises", style="bold red")
    )
    pairs = [
        ("ranks", str(report["ranks"])),
        ("loss", f"largest difference {report['loss_max_abs_diff']:.2e}"),
        ("gradients", f"largest relative difference {report['grad_max_rel_diff']:.2e}"),
        ("traffic", f"{total(traffic['observed']):,} bytes, {agreement(traffic)}"),
    ]
    return Group(
        verdict,
        facts(pairs),
        remarks("Reduced", report.get("reductions", []), style="dim"),
        remarks("No longer covered", report.get("not_covered", []), style="yellow"),
        remarks("Differences", report.get("differences", []), style="red"),
    )


def agreement(traffic: Document) -> str:
    """Whether the prediction was right."""
    if traffic["observed"] == traffic["predicted"]:
        return "as predicted"
    return f"predicted {total(traffic['predicted']):,}"


def total(traffic: object) -> int:
    """A number, or the sum over groups."""
    if isinstance(traffic, dict):
        return sum(total(value) for value in traffic.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return int(traffic) if isinstance(traffic, int | float) else 0
