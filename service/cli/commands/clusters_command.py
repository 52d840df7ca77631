"""`haplan clusters`: the bundled clusters."""

import typer

from service.cli import options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan clusters

    haplan clusters --format json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("clusters", epilog=EXAMPLES)(clusters_command)


def clusters_command(
    output_format: options.OutputFormat = Format.TEXT, output: options.OutputPath = None
) -> None:
    """List the bundled clusters. The JSON holds each cluster's document, to copy and change."""
    from service.catalogue import cluster_documents
    from service.cli.text.catalogue_text import show_clusters

    document = {"items": cluster_documents()}
    emit(document, show_clusters, output_format=output_format, path=output)
