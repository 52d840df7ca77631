"""The exception tree: what can go wrong with what a user gave us.

Infeasible is a result and not an exception; everything here is about input.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

NOTHING = "nothing"
"""The value of a violation where a document says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule.

    `field` is a JSON-pointer-like path into the document (`/pools/0/nodes`) or
    the name of a file, `value` what stood there, `rule` what is asked of it,
    and `fix` what to write instead.
    """

    field: str
    value: object
    rule: str
    fix: str

    def __str__(self) -> str:
        where = self.field or "document"
        got = self.value if self.value == NOTHING else shorten(self.value)
        return f"{where}: {self.rule}, got {got}; {self.fix}"


class HaplanError(Exception):
    """Base of every error that haplan raises on purpose."""


class InputError(HaplanError):
    """What was given breaks one or more rules; all of them are in `violations`."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations: tuple[Violation, ...] = tuple(violations)
        super().__init__("\n".join(str(v) for v in self.violations))

    @classmethod
    def of(cls, *, field: str, value: object, rule: str, fix: str) -> Self:
        """An error with a single violation."""
        return cls([Violation(field=field, value=value, rule=rule, fix=fix)])


class UnknownNumberError(InputError):
    """A number is needed that nobody has published and the cluster does not give."""


class UnknownNameError(InputError):
    """A name stands for nothing we know; `suggestions` are the nearest ones."""

    def __init__(self, *, kind: str, name: str, known: Iterable[str], field: str = "") -> None:
        self.suggestions: tuple[str, ...] = suggest(name, known)
        violation = Violation(
            field=field or kind,
            value=name,
            rule=f"must name a known {kind}",
            fix=did_you_mean(self.suggestions, known),
        )
        super().__init__([violation])


class UnsafeDocumentError(InputError):
    """A document was refused before it was read: too large, too deep or hostile."""


def suggest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names nearest to `name`, best first, at most three.

    Names that contain all parts of it (`h100` in `nvidia-h100-sxm-80g`) come before names that are
    spelled alike; case does not count.
    """
    names = list(known)
    parts = [part for part in re.split(r"[^a-z0-9.]+", name.casefold()) if part]
    containing = [n for n in names if parts and all(part in n.casefold() for part in parts)]
    containing.sort(key=lambda n: (not n.casefold().startswith(name.casefold()), len(n), n))
    folded = {n.casefold(): n for n in names}
    alike = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.5)
    return tuple(dict.fromkeys([*containing, *(folded[n] for n in alike)]))[:3]


def did_you_mean(suggestions: tuple[str, ...], known: Iterable[str]) -> str:
    """The advice that goes with a name that is not known."""
    if suggestions:
        return f"did you mean {' or '.join(suggestions)}?"
    names = sorted(known)
    listed = ", ".join(names[:8])
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"known are: {listed or 'none'}{more}"


def shorten(value: object, limit: int = 60) -> str:
    """`value` as text of at most `limit` characters, for a one-line message."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
