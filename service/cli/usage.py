"""What is wrong with a command line that does not parse."""

from collections.abc import Sequence
from typing import Any

import typer


def usage_messages(error: typer.TyperException, arguments: Sequence[str]) -> list[str]:
    """One message for each fault; all that is missing is named at once."""
    missing = missing_parameters(error, arguments)
    if len(missing) > 1:
        return [f"Missing {name}." for name in missing]
    message = error.format_message().replace("Value error, ", "")
    return [message.replace("Input should be", "must be")] if message else []


def missing_parameters(error: typer.TyperException, arguments: Sequence[str]) -> list[str]:
    """The required arguments and options that a command was not given."""
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ != "MissingParameter" or context is None:
        return []
    given = context.command.make_parser(context).parse_args(list(arguments[1:]))[0]
    return [
        f"{parameter.param_type_name} {parameter.get_error_hint()}"
        for parameter in context.command.params
        if parameter.required and not isinstance(given.get(parameter.name), str)
    ]
