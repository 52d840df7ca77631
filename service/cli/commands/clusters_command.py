"""`haplan clusters`: the bundled clusters."""

from typing import Annotated

import typer

from service.cli import options, own_options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan clusters

    haplan clusters hybrid-64

    haplan clusters hybrid-64 --document

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
    document: Annotated[
        bool,
        typer.Option("--document", help="Give only the file of the cluster, to copy and change."),
    ] = False,
    profiles: own_options.Profiles = None,
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> None:
    """List the bundled clusters, or show one with the sheets of its chips and links."""
    from costmodel.errors import InputError
    from service.catalogue import cluster_documents
    from service.cli.text.catalogue_text import show_clusters, show_document
    from service.cli.text.sheet_text import show_cluster_sheets
    from service.profiles import sheet_documents, with_profiles
    from service.sheets import cluster_sheets

    if name is not None:
        source = name if profiles is None else with_profiles(name, sheet_documents(profiles))
        found = cluster_sheets(source)
        if document:
            emit(found["document"], show_document, output_format=output_format, path=output)
        else:
            emit(found, show_cluster_sheets, output_format=output_format, path=output)
        return
    if document:
        fix = "write haplan clusters hybrid-64 --document, or another NAME"
        raise InputError.of(field="--document", value="no NAME", rule="needs a NAME", fix=fix)
    listed = {"items": cluster_documents()}
    emit(listed, show_clusters, output_format=output_format, path=output)
