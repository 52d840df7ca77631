"""A front of plans as a table."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from service.cli.text.quantities import seconds
from service.cli.text.tables import table

Document = dict[str, Any]


def show_front(front: Document) -> RenderableType:
    """The plans that no other beats in time, cost and chips together."""
    rows = [
        (
            seconds(point["step_time_s"]),
            f"{point['chips']:,}",
            cost_text(point["cost_per_token"]),
            ", ".join(f"{nodes} {name}" for name, nodes in point["nodes"].items()),
            point["target"],
        )
        for point in front["front"]
    ]
    title = f"{front['model']} on parts of {front['cluster']}: {front['tried']} plans"
    columns = (">step time", ">chips", ">cost per 1M tokens", "nodes", "target")
    return Group(Text(title, style="bold"), table("Front", columns, rows))


def cost_text(cost: float | None) -> str:
    """Cost of a million tokens; a pool may have no price."""
    return "no price" if cost is None else f"{1e6 * cost:.4g}"
