"""`haplan model`: what a model holds and what it takes."""

from typing import Annotated

import typer

from service.cli import options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan model deepseek-v3

    haplan model ./config.json --sequence-length 8192 --format json

    haplan model llama3-70b --graph -o graph.json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("model", epilog=EXAMPLES)(model_command)


def model_command(
    model: options.Model,
    graph: Annotated[
        bool, typer.Option("--graph", help="Give the block graph, itself an accepted MODEL.")
    ] = False,
    sequence_length: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Tokens per sequence; by default at most 4096."),
    ] = None,
    as_family: options.AsFamily = None,
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> None:
    """Read MODEL and say how large it is and how much work a token takes."""
    from service.cli.text.model_text import show_graph, show_model
    from service.inputs import read_model
    from service.model_document import graph_of, model_document
    from service.sources import Sources

    found = read_model(model, Sources(as_family=as_family))
    if graph:
        emit(graph_of(found), show_graph, output_format=output_format, path=output)
        return
    document = model_document(found, sequence_length=sequence_length)
    emit(document, show_model, output_format=output_format, path=output)
