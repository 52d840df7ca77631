"""An explanation as text: the summary, the schedule drawn, and what changes would do."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from service.cli.text.plan_text import plan_in_short, show_plan
from service.cli.text.quantities import seconds
from service.cli.text.tables import remarks, table
from service.cli.text.what_if_text import node_values_text, robustness_text

Document = dict[str, Any]

TIMELINE_STYLES = {
    "F": "green",
    "f": "bright_green",
    "B": "blue",
    "b": "bright_blue",
    "W": "magenta",
    "w": "bright_magenta",
    ".": "dim",
}

LEGEND = "F forward, B backward, W weight gradients; letter case alternates; a dot is idle"


def show_full_explanation(explanation: Document) -> RenderableType:
    """The whole plan, then the explanation."""
    return Group(show_plan(explanation["plan"]), reasons_text(explanation))


def show_explanation(explanation: Document) -> RenderableType:
    """The plan in three lines, then the explanation."""
    return Group(plan_in_short(explanation["plan"]), reasons_text(explanation))


def reasons_text(explanation: Document) -> RenderableType:
    """Why the plan is what it is."""
    parts: list[RenderableType] = [summary_text(explanation)]
    if explanation["timeline"]:
        parts.append(Timeline(explanation["timeline"]))
    if explanation["changes"]:
        parts.append(changes_text(explanation["changes"]))
    if explanation.get("robustness"):
        parts.append(robustness_text(explanation["robustness"]))
    if explanation.get("node_values"):
        parts.append(node_values_text(explanation["node_values"]))
    return Group(*parts)


def summary_text(explanation: Document) -> RenderableType:
    """Why, in sentences."""
    lines = (Padding(Text(line), (0, 0, 0, 2)) for line in explanation["summary"])
    return Group(Text("Why", style="bold"), *lines, Text())


@dataclass(frozen=True, slots=True)
class Timeline:
    """The schedule of the slowest pipeline, drawn as wide as there is room."""

    drawing: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head, *rows = self.drawing.splitlines()
        yield Text.assemble(("Schedule", "bold"), f": {head}")
        for row in rows:
            name, _, cells = row.partition("|")
            room = options.max_width - len(name) - len("  ||")
            yield timeline_row(name, narrowed(cells.rstrip("|"), room))
        yield Text(f"  {LEGEND}\n", style="dim")


def timeline_row(name: str, cells: str) -> Text:
    """One stage; forwards and backwards have their colours."""
    text = Text(f"  {name}|", no_wrap=True)
    for letter in cells:
        text.append(letter, style=TIMELINE_STYLES.get(letter, ""))
    return text.append("|")


def narrowed(cells: str, width: int) -> str:
    """Every so many of the cells, so that they fit."""
    if len(cells) <= width:
        return cells
    return "".join(cells[(2 * k + 1) * len(cells) // (2 * width)] for k in range(width))


def changes_text(changes: list[Document]) -> RenderableType:
    """What each change to the plan would do, and which cannot be made."""
    rows = [change_cells(change) for change in changes if change["relative"] is not None]
    barred = [f"{c['what']}: {c['reason']}" for c in changes if c["relative"] is None]
    columns = ("change", ">step time", ">effect")
    shown = table("What a change would do", columns, rows) if rows else Group()
    return Group(shown, remarks("Changes that are not possible", barred, style="dim"))


def change_cells(change: Document) -> tuple[str, str, Text]:
    """A change that can be made, with the step time after it."""
    style = "green" if change["relative"] < 0 else "red"
    effect = Text(f"{100 * change['relative']:+.1f} %", style=style)
    return change["what"], seconds(change["step_time_s"]), effect
