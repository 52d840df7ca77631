"""The command `haplan`: runs one command and turns errors into lines and exit codes."""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Annotated

import typer

from costmodel.errors import HaplanError, InputError
from service.cli.commands import REGISTER
from service.cli.questions import option_name
from service.cli.usage import faults_of_names, usage_messages
from service.outcomes import ExitCode, lines_of, outcome_of, problem_of

INTERRUPTED = 130
TRACE = "HAPLAN_TRACE"
"""Set in the environment, it adds the trace to the message about a bug."""


def build_app() -> typer.Typer:
    """The commands, ready to be run."""
    app = typer.Typer(
        name="haplan",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(for_all)
    for register in REGISTER:
        register(app)
    return app


def show_version(asked: bool) -> None:
    """Say which haplan this is, and which evaluator: step times compare within one only."""
    if asked:
        from costmodel.step import EVALUATOR_VERSION

        sys.stdout.write(f"haplan {version('haplan')}, evaluator {EVALUATOR_VERSION}\n")
        raise typer.Exit


def for_all(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Plans non-uniform parallel training on mixed accelerator clusters."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run one command; the answer is its exit code."""
    try:
        return int(build_app()(args=arguments, prog_name="haplan", standalone_mode=False) or 0)
    except typer.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:  # noqa: BLE001  the last resort: a bug must not look like a verdict
        return report_error(error, arguments)


def report_error(error: Exception, arguments: Sequence[str]) -> int:
    """Say what went wrong; the answer is the exit code."""
    if isinstance(error, HaplanError):
        report(
            problem_of(error).model_dump(mode="json"), lines_of(named_by_option(error)), arguments
        )
        return outcome_of(error).exit_code
    if isinstance(error, typer.TyperException):
        return report_usage(error, arguments)
    report_bug(error, arguments)
    return ExitCode.INTERNAL


def named_by_option(error: HaplanError) -> HaplanError:
    """`error` with its fields called what the command line calls them."""
    if not isinstance(error, InputError):
        return error
    return InputError(replace(v, field=option_name(v.field)) for v in error.violations)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are to be JSON too, also when the arguments could not be parsed."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(a == "--format=json" or (a, b) == ("--format", "json") for a, b in pairs)


def report(problem: dict[str, object], lines: Sequence[str], arguments: Sequence[str]) -> None:
    """Say on stderr what is wrong."""
    if wants_json(arguments):
        sys.stderr.write(json.dumps({"error": problem}, indent=2) + "\n")
    else:
        sys.stderr.writelines(f"haplan: {line}\n" for line in lines)


def report_usage(error: typer.TyperException, arguments: Sequence[str]) -> int:
    """A command line that does not parse is bad input."""
    messages = usage_messages(error, arguments)
    if messages:
        faults = faults_of_names(error, arguments)
        problem: dict[str, object] = {
            "type": "urn:haplan:problem:usage",
            "title": "The command line is wrong",
            "detail": " ".join([*messages, *faults]),
            "errors": [],
        }
        lines = [f"{message} (see --help)" for message in messages]
        report(problem, [*lines, *faults], arguments)
    return ExitCode.INPUT


def report_bug(error: Exception, arguments: Sequence[str]) -> None:
    """A bug: one line for the reader, and the trace for a report if it is asked for."""
    message = f"internal error, please report it: {type(error).__name__}: {error}"
    if os.environ.get(TRACE):
        traceback.print_exception(error)
    else:
        message = f"{message} ({TRACE}=1 shows where)"
    problem: dict[str, object] = {
        "type": "urn:haplan:problem:internal",
        "title": "Something went wrong",
        "detail": message,
        "errors": [],
    }
    report(problem, [message], arguments)
