"""One published training run, as stated: model, hardware, parallelism, what was measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

from costmodel.errors import HaplanError, InputError

QUALITIES = ("A", "B", "C")
"""A: stated in full by the source; B: partly derived; C: in doubt."""


def check_quality(text: str) -> str:
    """A quality as typed. Raises InputError for none of ``QUALITIES``."""
    if text.upper() not in QUALITIES:
        raise InputError.of(
            field="--min-quality",
            value=text,
            rule=f"must be one of {', '.join(QUALITIES)}",
            fix="leave it out for B",
        )
    return text.upper()


class UnscorableError(HaplanError):
    """Why a case cannot be predicted; the text is the reason that reports count by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A group of stated values. An absent or null value is not stated."""

    name: str
    values: Mapping[str, Any]

    def number(self, key: str) -> float | None:
        """A stated number, else None."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)

    def size(self, key: str) -> int | None:
        """A stated whole number, else None."""
        value = self.number(key)
        return None if value is None else round(value)

    def need(self, key: str) -> int:
        """A whole number of at least 1. Raises UnscorableError when it is not stated."""
        value = self.size(key)
        if value is None or value < 1:
            raise UnscorableError(f"{self.name} {key} not stated")
        return value

    def word(self, key: str) -> str:
        """A stated text, else the empty one."""
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def text(self, key: str) -> str:
        """A stated text or list of texts as one text in small letters, else the empty one."""
        value = self.values.get(key)
        words = cast("list[object]", value) if isinstance(value, list) else [value]
        return " ".join(str(word) for word in words if isinstance(word, str)).lower()

    def flag(self, key: str) -> bool | None:
        """A stated truth value, else None."""
        value = self.values.get(key)
        return value if isinstance(value, bool) else None

    def sub(self, key: str) -> "Section | None":
        """A stated group inside this one, else None."""
        value = self.values.get(key)
        if not isinstance(value, Mapping):
            return None
        return Section(name=f"{self.name} {key}", values=cast("Mapping[str, Any]", value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A measured case as in the interface's "Measured case"; bytes and seconds.

    layout: the stages one by one, for a mix of chips.
    """

    id: str
    source: str
    stack: str
    url: str
    quality: str
    model: Section
    hardware: Section
    parallel: Section
    measured: Section
    layout: Section = Section(name="layout", values=MappingProxyType({}))
    note: str = ""

    def with_values(self, section: str, **values: Any) -> "Case":
        """The case with these values stated in one of its sections."""
        old: Section = getattr(self, section)
        changed = replace(old, values={**old.values, **values})
        return replace(self, **{section: changed})


def case_of(row: Mapping[str, Any]) -> Case:
    """The case of one row. Raises KeyError for a row without id or measurements."""

    def section(name: str) -> Section:
        return Section(name=name, values=row.get(name) or {})

    return Case(
        id=str(row["id"]),
        source=str(row.get("source", "")),
        stack=str(row.get("stack", "")),
        url=str(row.get("url", "")),
        quality=str(row.get("quality") or "C"),
        model=section("model"),
        hardware=section("hardware"),
        parallel=section("parallel"),
        measured=Section(name="measured", values=row["measured"]),
        layout=section("layout"),
        note=str(row.get("note", "")),
    )
