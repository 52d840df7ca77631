"""Keeps every violation of a document while the rest of it is read."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from costmodel.errors import InputError, Violation
from costmodel.units import Dimension, parse_quantity


class Faults:
    """Violations collected so far; `check` raises them all at once."""

    def __init__(self, violations: Iterable[Violation] = ()) -> None:
        self._violations = list(violations)

    def refuse(self, field: str, value: object, rule: str, fix: str) -> None:
        """Note one violation."""
        self._violations.append(Violation(field=field, value=value, rule=rule, fix=fix))

    @contextmanager
    def collecting(self) -> Generator[None]:
        """Note what an `InputError` inside says and go on after the block."""
        try:
            yield
        except InputError as error:
            self._violations += error.violations

    def quantity(self, text: str | None, dimension: Dimension, field: str) -> float | None:
        """The number behind a text with unit, in SI units; None without one or with a fault."""
        with self.collecting():
            return None if text is None else parse_quantity(text, dimension, field=field)
        return None

    def check(self) -> None:
        """Raise `InputError` with every violation, each once."""
        if self._violations:
            found = self._violations
            raise InputError(v for i, v in enumerate(found) if v not in found[:i])
