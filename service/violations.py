"""Violations from two sources: pydantic's error lists, and readers that each look at one part."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from costmodel.errors import InputError, Violation


def violations_of(details: Sequence[Mapping[str, Any]], *, skip: int = 0) -> list[Violation]:
    """Pydantic's errors as violations; `skip` leaves out the first parts of each location."""
    return [
        Violation(
            field="".join(f"/{escape(str(part))}" for part in detail["loc"][skip:]),
            value=detail.get("input"),
            rule=rule_of(detail),
            fix=fix_of(detail),
        )
        for detail in details
    ]


FIXES: Mapping[str, str] = MappingProxyType(
    {
        "missing": "add it",
        "extra_forbidden": "remove it, or correct its spelling",
        "literal_error": "choose one of {expected}",
        "greater_than": "write a number above {gt}",
        "greater_than_equal": "write a number of at least {ge}",
        "less_than_equal": "write a number of at most {le}",
        "int_type": "write a whole number",
        "string_type": "write a text",
        "json_invalid": "correct the JSON there",
    }
)


def fix_of(detail: Mapping[str, Any]) -> str:
    """What to write instead."""
    return FIXES.get(detail["type"], "correct it").format_map(detail.get("ctx") or {})


def rule_of(detail: Mapping[str, Any]) -> str:
    """Pydantic's message as a rule: `must be ...` in lower case."""
    message = str(detail["msg"]).removeprefix("Value error, ")
    message = message.removeprefix("Input should be ")
    if message != detail["msg"] and not message.startswith("must"):
        message = f"must be {message}"
    return message[:1].lower() + message[1:]


def escape(part: str) -> str:
    """One part of a JSON pointer (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1")


class Collector:
    """Gathers the violations of several readers, so that a user gets them all in one answer."""

    def __init__(self) -> None:
        self._violations: list[Violation] = []

    @contextmanager
    def reading(self, part: str) -> Generator[None]:
        """Keep what is wrong in the block as violations of `part`, and go on."""
        try:
            yield
        except InputError as error:
            self._violations += [located(part, violation) for violation in error.violations]

    def check(self) -> None:
        """Raise all violations gathered, if there are any."""
        if self._violations:
            raise InputError(self._violations)


def located(part: str, violation: Violation) -> Violation:
    """`violation` as seen from outside of `part`."""
    inner = violation.field
    if inner.startswith("/"):
        return replace(violation, field=f"{part}{inner}")
    return replace(violation, field=part if inner in ("", part.strip("/")) else f"{part} {inner}")
