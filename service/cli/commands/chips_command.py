"""`haplan chips`: the bundled accelerators."""

import typer

from service.cli import options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan chips

    haplan chips --format json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("chips", epilog=EXAMPLES)(chips_command)


def chips_command(
    output_format: options.OutputFormat = Format.TEXT, output: options.OutputPath = None
) -> None:
    """List the bundled chips with the numbers that plans use."""
    from service.catalogue import chip_documents
    from service.cli.text.catalogue_text import show_chips

    document = {"items": chip_documents()}
    emit(document, show_chips, output_format=output_format, path=output)
