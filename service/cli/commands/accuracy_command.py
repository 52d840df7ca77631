"""`haplan accuracy`: how close predictions are to measured runs."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli import options, own_options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan accuracy runs.jsonl

    haplan accuracy runs.jsonl more.jsonl --min-quality A --format json

    haplan accuracy runs.jsonl --software our-stack.yaml
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("accuracy", epilog=EXAMPLES)(accuracy_command)


def accuracy_command(
    cases: Annotated[
        list[Path],
        typer.Argument(metavar="CASES...", help="Files of measured runs, one a line, or folders."),
    ],
    min_quality: Annotated[
        str, typer.Option(metavar="A|B|C", help="Leave out runs stated less well than this.")
    ] = "B",
    software: own_options.Software = "auto",
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> int:
    """Score the cost model on measured training runs.

    Each run is predicted with the software profile that its `stack` names, else with the default
    one; with `--software` all of them with that one. Every run that is not scored is listed with
    the reason.
    """
    from costmodel.calibration.accuracy import accuracy
    from costmodel.calibration.case import check_quality
    from costmodel.calibration.read import read_some_cases
    from costmodel.software.read import efficiency_of
    from service.cli.text.accuracy_text import show_accuracy
    from service.outcomes import ExitCode
    from service.profiles import software_named

    own = None if software == "auto" else efficiency_of(software_named(software))
    quality = check_quality(min_quality)
    document = accuracy(read_some_cases(cases), min_quality=quality, efficiency=own)
    emit(document, show_accuracy, output_format=output_format, path=output)
    return ExitCode.OK
