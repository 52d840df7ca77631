"""A model as text."""

from typing import Any

from rich.console import Group, RenderableType
from rich.json import JSON

from service.cli.output import to_json
from service.cli.text.quantities import count
from service.cli.text.tables import facts, remarks, table

Document = dict[str, Any]

PARTS = {
    "embedding": "of it embedding",
    "expert": "of it experts",
    "component": "of it beside the stack",
    "mtp": "multi-token prediction",
}
"""Parts of a model by their key; multi-token prediction is not in the total."""


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
        (
            "model FLOP",
            f"{count(model['flops_per_token'])} a token at {model['sequence_length']:,} tokens",
        ),
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


def show_graph(graph: Document) -> RenderableType:
    """A block graph; there is no shorter way to say it than its document."""
    text = JSON(to_json(graph)).text
    text.no_wrap, text.overflow = False, "fold"
    return text
