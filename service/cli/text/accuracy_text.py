"""The accuracy of the cost model as tables."""

from collections import Counter
from typing import Any

from rich.console import Group, RenderableType

from service.cli.text.tables import table

Document = dict[str, Any]

METRICS = ("time", "time_tuned", "time_untuned", "memory", "static_memory")
COLUMNS = ("", ">rows", ">median", ">mean", ">p90", ">bias", ">mean of stacks")


def show_accuracy(document: Document) -> RenderableType:
    """Errors of every metric, tuned step times by stack, and the reasons for what is left out."""
    title = f"Accuracy: {document['scored']} of {document['rows']} runs scored"
    rows = [error_row(name, document[name]) for name in METRICS]
    stacks = [error_row(name, own["time"]) for name, own in document["by_stack"].items()]
    reasons = Counter(item["reason"] for item in document["skipped"]).most_common()
    return Group(
        table(title, COLUMNS, rows),
        table("Step time by stack", COLUMNS, stacks),
        table("Choice of layout and intervals", ("", ">"), other_rows(document)),
        table("Not scored", ("reason", ">rows"), [(text, str(n)) for text, n in reasons]),
    )


def error_row(name: str, errors: Document) -> tuple[str, ...]:
    """One metric."""
    keys = ("median_ape", "mape", "p90_ape", "bias", "macro_median")
    return name, str(errors["n"]), *(percent(errors.get(key)) for key in keys)


def other_rows(document: Document) -> list[tuple[str, str]]:
    """What is no error of a metric."""
    regret = document["regret"]
    return [
        ("groups of layouts", str(regret["groups"])),
        ("regret, mean", percent(regret.get("mean"))),
        ("regret, median", percent(regret.get("median"))),
        ("inside the 90 % interval", percent(document["coverage"])),
        ("median half-width", percent(document["half_width"])),
    ]


def percent(share: float | None) -> str:
    """A share, or a dash where there is none."""
    return "-" if share is None else f"{100 * share:.1f} %"
