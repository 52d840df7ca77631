"""Gathers what several readers, each looking at one part, find wrong."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from costmodel.errors import InputError, Violation


class Collector:
    """Gathers the violations of several readers, so that a user gets them all in one answer."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    @contextmanager
    def reading(self, part: str) -> Generator[None]:
        """Keep what is wrong in the block as violations of `part`, and go on."""
        try:
            yield
        except InputError as error:
            self.violations += [located(part, violation) for violation in error.violations]
        except OSError as error:  # a path that the system refuses, such as one too long
            value, rule = error.filename, f"must be readable ({error.strerror})"
            fix = "give a bundled name or the path of a readable file"
            self.violations.append(Violation(field=part, value=value, rule=rule, fix=fix))

    def check(self) -> None:
        """Raise all violations gathered, if there are any."""
        if self.violations:
            raise InputError(self.violations)


def located(part: str, violation: Violation) -> Violation:
    """`violation` as seen from outside of `part`."""
    inner = violation.field
    if inner.startswith("/"):
        return replace(violation, field=f"{part}{inner}")
    return replace(violation, field=part if inner in ("", part.strip("/")) else f"{part} {inner}")


def is_sound(part: str, broken: Sequence[str]) -> bool:
    """Whether none of the fields that break rules is at or below `part`."""
    return not any(f"{field}/".startswith(f"{part}/") for field in broken)
