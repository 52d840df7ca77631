"""What is wrong with a command line that does not parse."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import typer

from service.cli.questions import option_name
from service.sources import Sources

QUESTIONS = ("plan", "estimate")
"""Commands that take a MODEL and a CLUSTER."""


def usage_messages(error: typer.TyperException, arguments: Sequence[str]) -> list[str]:
    """One message for each fault; all that is missing is named at once."""
    missing = missing_parameters(error, arguments)
    if len(missing) > 1:
        return [f"Missing {name}." for name in missing]
    message = error.format_message().replace("Value error, ", "")
    return [message.replace("Input should be", "must be")] if message else []


def given_values(context: Any, arguments: Sequence[str]) -> dict[str, Any]:
    """What a command was given, by parameter; nothing where the line cannot be taken apart."""
    try:
        return context.command.make_parser(context).parse_args(list(arguments[1:]))[0]
    except typer.TyperException:
        return {}


def faults_of_names(error: typer.TyperException, arguments: Sequence[str]) -> list[str]:
    """What is wrong with the MODEL and CLUSTER of a question whose command line does not parse."""
    context: Any = getattr(error, "ctx", None)
    if context is None or context.command.name not in QUESTIONS:
        return []
    from service.inputs import other_faults

    given = given_values(context, arguments)
    words = {name: word for name, word in given.items() if isinstance(word, str)}
    sources = Sources(as_family=words.get("as_family"))
    parts = {name: words[name] for name in ("model", "cluster", "target") if name in words}
    found = other_faults(parts, (), sources)
    return [str(replace(fault, field=option_name(fault.field))) for fault in found]


def missing_parameters(error: typer.TyperException, arguments: Sequence[str]) -> list[str]:
    """The required arguments and options that a command was not given."""
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ != "MissingParameter" or context is None:
        return []
    given = given_values(context, arguments)
    return [
        f"{parameter.param_type_name} {parameter.get_error_hint()}"
        for parameter in context.command.params
        if parameter.required and not isinstance(given.get(parameter.name), str)
    ]
