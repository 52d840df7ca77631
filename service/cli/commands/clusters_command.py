"""`haplan clusters`: the bundled clusters."""

from typing import Annotated

import typer

from service.cli import options, own_options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan clusters

    haplan clusters hybrid-64

    haplan clusters --format json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("clusters", epilog=EXAMPLES)(clusters_command)


def clusters_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The one to show, bundled or a file, with the source of every number.",
        ),
    ] = None,
    profiles: own_options.Profiles = None,
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> None:
    """List the bundled clusters, or show one with the sheets of its chips and links.

    The JSON holds each cluster's document, to copy and change.
    """
    from service.catalogue import cluster_documents
    from service.cli.text.catalogue_text import show_clusters
    from service.cli.text.sheet_text import show_cluster_sheets
    from service.profiles import sheet_documents, with_profiles
    from service.sheets import cluster_sheets

    if name is not None:
        source = name if profiles is None else with_profiles(name, sheet_documents(profiles))
        emit(cluster_sheets(source), show_cluster_sheets, output_format=output_format, path=output)
        return
    document = {"items": cluster_documents()}
    emit(document, show_clusters, output_format=output_format, path=output)
