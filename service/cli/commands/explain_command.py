"""`haplan explain`: why this plan."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli import options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan explain plan.json

    haplan explain plan.json --full

    haplan explain plan.json --what-if
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain", epilog=EXAMPLES)(explain_command)


def explain_command(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A file that `haplan plan` wrote.")],
    full: Annotated[
        bool, typer.Option("--full", help="Show the whole plan too, as `haplan plan` does.")
    ] = False,
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if",
            help="Search again: does the choice survive a wrong cost model, and what is one more "
            "node of each pool worth?",
        ),
    ] = False,
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> None:
    """Say what limits PLAN, where its time goes, and what each change would do."""
    from service.cli.text.explain_text import show_explanation, show_full_explanation
    from service.usecases import explain_plan

    document = explain_plan(plan, what_if=what_if)
    show = show_full_explanation if full else show_explanation
    emit(document, show, output_format=output_format, path=output)
