"""Violations from two sources: pydantic's error lists, and readers that each look at one part."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

from costmodel.errors import InputError, Violation


def violations_of(details: Sequence[Mapping[str, Any]], document: object) -> list[Violation]:
    """Pydantic's errors about `document` as violations, one for each field.

    Where a field may be one of several things, pydantic reports an error for each of them.
    """
    by_field: dict[str, list[Mapping[str, Any]]] = {}
    for detail in details:
        by_field.setdefault(pointer_of(detail, document), []).append(detail)
    return [
        Violation(
            field=field,
            value="nothing" if about[0]["type"] == "missing" else about[0].get("input"),
            rule=" or ".join(dict.fromkeys(rule_of(detail) for detail in about)),
            fix=" or ".join(dict.fromkeys(fix_of(detail) for detail in about)),
        )
        for field, about in by_field.items()
    ]


def pointer_of(detail: Mapping[str, Any], document: object) -> str:
    """Where in `document` an error is.

    Pydantic's location also names the alternatives that it tried; what is not in the document is
    left out, but for the name of a missing field.
    """
    *inner, last = detail["loc"] or ("",)
    pointer, value = "", document
    for part in inner:
        if has(value, part):
            pointer, value = f"{pointer}/{escape(str(part))}", cast("Any", value)[part]
    if last != "" and (detail["type"] == "missing" or has(value, last)):
        pointer = f"{pointer}/{escape(str(last))}"
    return pointer


def has(value: object, part: object) -> bool:
    """Whether `part` is a key or an index of `value`."""
    if isinstance(value, Mapping):
        return part in value
    if isinstance(value, list) and isinstance(part, int):
        return part < len(cast("list[object]", value))
    return False


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
