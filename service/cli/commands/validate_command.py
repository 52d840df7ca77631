"""`haplan validate`: does the plan run, and does it compute the right thing?"""

from pathlib import Path
from typing import Annotated

import typer

from service.cli import options
from service.cli.output import Format, emit, progress
from service.outcomes import ExitCode, MissingExtraError

EXAMPLES = """
Examples:

    haplan validate plan.json

    haplan validate plan.json --max-ranks 8 --format json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate", epilog=EXAMPLES)(validate_command)


def validate_command(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A file that `haplan plan` wrote.")],
    max_ranks: Annotated[
        int, typer.Option(metavar="N", min=1, help="At most so many processes.")
    ] = 16,
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> int:
    """Execute a reduced PLAN with torch on CPU processes.

    Loss, gradients and traffic are compared with one process and with the prediction; exit code 1
    says that they differ, 3 that the plan is infeasible: there is nothing to execute.
    """
    from service.cli.text.validate_text import show_validation
    from service.usecases import validate_plan

    with progress(f"executing {plan} on at most {max_ranks} CPU processes"):
        try:
            report = validate_plan(plan, max_ranks=max_ranks)
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"{error.name} is not installed: pip install 'haplan[runner]'"
            ) from error
    emit(report, show_validation, output_format=output_format, path=output)
    return ExitCode.OK if report["ok"] else ExitCode.POLICY
