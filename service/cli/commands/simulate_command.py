"""`haplan simulate`: what every stage of a plan does when."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli import options
from service.cli.output import Format, emit

EXAMPLES = """
Examples:

    haplan simulate plan.json

    haplan simulate plan.json --trace trace.json

    haplan simulate plan.json --trace trace.json.gz --pipeline 0
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", epilog=EXAMPLES)(simulate_command)


def simulate_command(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A file that `haplan plan` wrote.")],
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Write the timeline as Chrome trace events, for ui.perfetto.dev; "
            "compressed where the name ends in .gz.",
        ),
    ] = None,
    pipeline: Annotated[
        int | None,
        typer.Option(
            "--pipeline", metavar="K", help="Which pipeline, from 0; that which ends the step."
        ),
    ] = None,
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> None:
    """Run one pipeline of PLAN through the event simulation, pass by pass.

    Says what each stage does with the step: computing, communication, waiting.
    """
    from service.cli.text.simulate_text import show_simulation
    from service.simulation import simulate_plan

    others = [output] if output else []
    document = simulate_plan(plan, pipeline=pipeline, trace=trace, others=others)
    emit(document, show_simulation, output_format=output_format, path=output)
