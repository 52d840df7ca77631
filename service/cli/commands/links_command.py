"""`haplan links`: the bundled links."""

from typing import Annotated

import typer

from service.cli import options, own_options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan links

    haplan links nvlink4

    haplan links --format json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("links", epilog=EXAMPLES)(links_command)


def links_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The one to show, with the source of every number."),
    ] = None,
    profiles: own_options.Profiles = None,
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> None:
    """List the bundled links for scale_up and scale_out, or show the whole sheet of one."""
    from service.cli.text.catalogue_text import show_links
    from service.cli.text.sheet_text import show_sheet
    from service.profiles import sheets_in
    from service.sheets import link_document

    sheets = sheets_in(profiles)
    if name is not None:
        emit(link_document(name, sheets), show_sheet, output_format=output_format, path=output)
        return
    document = {"items": [link_document(link, sheets) for link in sheets.link_names]}
    emit(document, show_links, output_format=output_format, path=output)
