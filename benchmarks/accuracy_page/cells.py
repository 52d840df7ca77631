"""Cells and rows of Markdown tables."""

from collections.abc import Iterable, Sequence
from typing import Any

NONE = "-"


def share(value: float | None, *, sign: bool = False) -> str:
    """A relative error or width in percent."""
    if value is None:
        return NONE
    text = f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"
    return f"{text} %"


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines)


def escaped(text: str) -> str:
    """Text that does not end its cell."""
    return " ".join(text.replace("|", "\\|").split())


def median_and_mean(errors: dict[str, Any]) -> str:
    """Both, of statistics that may have no row."""
    if not errors.get("n"):
        return NONE
    return f"{share(errors['median_ape'])} / {share(errors['mape'])}"


def median_of(errors: dict[str, Any]) -> str:
    """The median of statistics that may have no row."""
    return share(errors["median_ape"]) if errors.get("n") else NONE
