"""`haplan regress`: whether plans got worse."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli import options
from service.cli.output import Format, console, emit, save
from service.outcomes import ExitCode

EXAMPLES = """
Examples:

    haplan regress suite.yaml --baseline baseline.json

    haplan regress suite.yaml --baseline baseline.json --update
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("regress", epilog=EXAMPLES)(regress_command)


def regress_command(
    suite: Annotated[Path, typer.Argument(metavar="SUITE", help="A YAML file of cases.")],
    baseline: Annotated[Path, typer.Option(metavar="FILE", help="The results to compare with.")],
    update: Annotated[
        bool, typer.Option("--update", help="Write the results to the baseline instead.")
    ] = False,
    threshold: Annotated[
        float, typer.Option(min=0, help="Slower by more than this share fails.")
    ] = 0.02,
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> int:
    """Plan every case of SUITE again and compare the predicted step times with a baseline.

    Exit code 1 says that a case got slower, stopped being feasible, or is missing.
    """
    from planner.regression import compare
    from service.cli.text.regress_text import show_report
    from service.regression import baseline_text, read_baseline, read_suite, report_of, run_suite

    cases = read_suite(suite)
    before = {} if update else read_baseline(baseline)
    watched = console(stderr=True)
    after = run_suite(cases, on_case=lambda name: watched.print(f"planning {name}"))
    if update:
        save(baseline_text(after), baseline)
    report = report_of(compare(before, after, threshold=threshold), threshold=threshold)
    emit(report, show_report, output_format=output_format, path=output)
    return ExitCode.OK if report["passed"] else ExitCode.POLICY
