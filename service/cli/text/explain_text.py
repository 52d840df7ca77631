"""An explanation as text: the summary, the plan, the schedule drawn, and what changes would do."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.cli.text.plan_text import show_plan
from service.cli.text.quantities import seconds
from service.cli.text.tables import table

Document = dict[str, Any]

TIMELINE_STYLES = {"F": "green", "f": "bright_green", "B": "blue", "b": "bright_blue", ".": "dim"}

LEGEND = "F, B: forward and backward, letter case alternates; a dot is idle"


def show_explanation(explanation: Document) -> RenderableType:
    """The whole explanation."""
    parts: list[RenderableType] = [show_plan(explanation["plan"]), summary_text(explanation)]
    if explanation["timeline"]:
        parts.append(timeline_text(explanation["timeline"]))
    if explanation["changes"]:
        parts.append(change_table(explanation["changes"]))
    return Group(*parts)


def summary_text(explanation: Document) -> Text:
    """Why, in sentences."""
    return Text.assemble(("Why", "bold"), *(f"\n  {line}" for line in explanation["summary"]), "\n")


def timeline_text(timeline: str) -> Text:
    """The schedule of the slowest pipeline; the drawing is between bars."""
    head, *rows = timeline.splitlines()
    text = Text(no_wrap=True).append("Schedule", style="bold").append(f": {head}\n")
    for row in rows:
        name, _, drawing = row.partition("|")
        text.append(f"  {name}|")
        for letter in drawing:
            text.append(letter, style=TIMELINE_STYLES.get(letter, ""))
        text.append("\n")
    return text.append(
        "  F, B: forward and backward, letter case alternates; a dot is idle\n", "dim"
    )


def change_table(changes: list[Document]) -> Table:
    """What each change to the plan would do."""
    rows = [(change["what"], *effect_cells(change)) for change in changes]
    return table("What a change would do", ("change", ">step time", ">effect", ""), rows)


def effect_cells(change: Document) -> tuple[str, Text, str]:
    """Step time and effect, or why the change is not possible."""
    if change["relative"] is None:
        return "", Text("not possible", style="dim"), change["reason"]
    style = "green" if change["relative"] < 0 else "red"
    effect = Text(f"{100 * change['relative']:+.1f} %", style=style)
    return seconds(change["step_time_s"]), effect, change["reason"]
