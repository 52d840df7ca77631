"""The accuracy of the cost model as tables."""

from collections import Counter
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from service.cli.text.quantities import seconds
from service.cli.text.tables import facts, remarks, table

Document = dict[str, Any]

LEGEND = (
    "tuned: measured utilisation of at least 0.25; bias: median signed error, + is predicted too "
    "slow or too large; regret: what the layout predicted fastest loses against the fastest; "
    "half-width: of the interval, over the predicted time"
)
FEW_RUNS = 12
"""So many runs are shown one by one."""
QUALITY_HINT = "less than --min-quality asks for; a run that states no quality counts as C"
METRICS = {
    "time": "step time",
    "time_tuned": "step time, tuned",
    "time_untuned": "step time, untuned",
    "memory": "peak memory",
    "static_memory": "static memory",
}
COLUMNS = ("", ">rows", ">median", ">mean", ">p90", ">bias", ">mean of stacks")


def show_accuracy(document: Document) -> RenderableType:
    """Errors of every metric, tuned step times by stack, and the reasons for what is left out."""
    title = f"Accuracy: {document['scored']} of {document['rows']} runs scored"
    rows = [error_row(label, document[name]) for name, label in METRICS.items()]
    stacks = [error_row(name, own["time"]) for name, own in document["by_stack"].items()]
    reasons = Counter(item["reason"] for item in document["skipped"]).most_common()
    left_out = table("Not scored", ("reason", ">rows"), [(text, str(n)) for text, n in reasons])
    qualities = [text for text in dict(reasons) if text.startswith("quality ")]
    hint = Text(f"{', '.join(qualities)}: {QUALITY_HINT}\n" if qualities else "", style="dim")
    if not document["scored"]:
        return Group(Text(title, style="bold"), left_out, hint)
    runs = document["runs"]
    return Group(
        *([runs_table(runs), *run_remarks(runs)] if len(runs) <= FEW_RUNS else []),
        table(title, COLUMNS, [row for row in rows if row[1] != "0"]),
        table("Step time by stack", COLUMNS, stacks),
        Text("Choice of layout and intervals", style="bold"),
        facts(other_rows(document)),
        Text(),
        *([left_out, hint] if reasons else []),
        Text(LEGEND, style="dim"),
    )


def runs_table(runs: list[Document]) -> RenderableType:
    """Every run with a measured step time."""
    columns = ("run", ">measured", ">predicted", ">error", ">90 % interval")
    rows = [
        (
            run["id"],
            seconds(run["measured_s"]),
            seconds(run["predicted_s"]),
            f"{100 * run['errors']['time']:+.1f} %",
            " to ".join(map(seconds, run["interval_s"])),
        )
        for run in runs
        if "time" in run["errors"]
    ]
    return table("Step times", columns, rows)


def run_remarks(runs: list[Document]) -> list[RenderableType]:
    """What was assumed where runs leave something open."""
    return [remarks(f"Assumed for {r['id']}", r["assumptions"], style="dim") for r in runs]


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
