"""`haplan chips`: the bundled accelerators."""

from typing import Annotated

import typer

from service.cli import options, own_options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan chips

    haplan chips nvidia-h100-sxm-80g

    haplan chips nvidia-h100-sxm-80g --profiles profiles

    haplan chips --format json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("chips", epilog=EXAMPLES)(chips_command)


def chips_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The one to show, with the source of every number."),
    ] = None,
    profiles: own_options.Profiles = None,
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> None:
    """List the bundled chips with the numbers that plans use, or show the whole sheet of one."""
    from service.catalogue import chip_documents
    from service.cli.text.catalogue_text import show_chips
    from service.cli.text.sheet_text import show_sheet
    from service.profiles import sheets_in
    from service.sheets import chip_document

    sheets = sheets_in(profiles)
    if name is not None:
        emit(chip_document(name, sheets), show_sheet, output_format=output_format, path=output)
        return
    document = {"items": chip_documents(sheets)}
    emit(document, show_chips, output_format=output_format, path=output)
