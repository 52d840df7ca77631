"""What an execution showed, as text."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from service.cli.text.tables import facts, remarks

Document = dict[str, Any]


def show_validation(report: Document) -> RenderableType:
    """The verdict, then what was compared."""
    verdict = (
        Text("the plan runs and computes what one process computes", style="bold green")
        if report["ok"]
        else Text("the execution differs from what the plan promises", style="bold red")
    )
    pairs = [
        ("ranks", str(report["ranks"])),
        ("loss", f"largest difference {report['loss_max_abs_diff']:.2e}"),
        ("gradients", f"largest relative difference {report['grad_max_rel_diff']:.2e}"),
        ("traffic", traffic_text(report["traffic_bytes"])),
    ]
    return Group(
        verdict,
        facts(pairs),
        remarks("Reduced", report.get("reductions", []), style="dim"),
        remarks("No longer covered", report.get("not_covered", []), style="yellow"),
        remarks("Differences", report.get("differences", []), style="red"),
    )


def traffic_text(traffic: Document) -> str:
    """Bytes by kind of group; a prediction is shown where it was wrong."""
    predicted, observed = traffic["predicted"], traffic["observed"]
    names = sorted({*predicted, *observed})
    kinds = [kind_text(name, predicted.get(name, 0), observed.get(name, 0)) for name in names]
    verdict = "as predicted" if predicted == observed else "not as predicted"
    return f"{sum(observed.values()):,} bytes, {verdict}: {', '.join(kinds) or 'none'}"


def kind_text(name: str, predicted: int, observed: int) -> str:
    """Bytes of one kind of group."""
    return f"{name} {observed:,}" + ("" if observed == predicted else f" (not {predicted:,})")
