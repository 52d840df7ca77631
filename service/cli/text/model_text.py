"""A model as text."""

from typing import Any

from rich.console import Group, RenderableType
from rich.json import JSON

from service.cli.output import to_json
from service.cli.text.quantities import count
from service.cli.text.tables import facts, remarks, table

Document = dict[str, Any]

GIGA = 1e9
PARTS = {
    "embedding": "input embedding",
    "expert": "routed experts",
    "component": "beside the stack",
    "mtp": "multi-token prediction",
}
"""Parts of a model by their key, in the total but for multi-token prediction."""


def show_model(model: Document) -> RenderableType:
    """Size, work and blocks of a model."""
    parameters = model["parameters"]
    pairs = [
        ("model", f"{model['name']} ({model['family']})"),
        ("layers", str(model["layers"])),
        ("parameters", f"{parameters['total']:,} ({count(parameters['total'])})"),
        ("active for a token", f"{parameters['active']:,} ({count(parameters['active'])})"),
        *(
            (name, f"{parameters[key]:,} ({count(parameters[key])})")
            for key, name in PARTS.items()
            if parameters[key]
        ),
        ("model FLOP", work_text(model)),
    ]
    rows = [
        (block["name"], str(block["count"]), f"{block['parameters']:,}", str(block["ops"]))
        for block in model["blocks"]
    ]
    return Group(
        facts(pairs),
        table("Blocks", ("block", ">times", ">parameters of one", ">ops"), rows),
        remarks("Assumptions", model["assumptions"], style="dim"),
    )


def work_text(model: Document) -> str:
    """Arithmetic of one token."""
    work = f"{model['flops_per_token'] / GIGA:,.4g} GFLOP a token"
    return f"{work}, forward and backward, at {model['sequence_length']:,} tokens"


def show_graph(graph: Document) -> RenderableType:
    """A block graph; there is no shorter way to say it than its document."""
    text = JSON(to_json(graph)).text
    text.no_wrap, text.overflow = False, "fold"
    return text
