"""The look that all tables share."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[RenderableType]]) -> Table:
    """A table; a column whose name starts with `>` is set flush right."""
    result = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        collapse_padding=True,
    )
    for column in columns:
        right = column.startswith(">")
        result.add_column(
            column.removeprefix(">"), justify="right" if right else "left", no_wrap=right
        )
    for row in rows:
        result.add_row(*row)
    return result


def facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names and values in two columns."""
    result = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    result.add_column(style="dim", no_wrap=True)
    result.add_column()
    for name, value in pairs:
        result.add_row(name, value)
    return result


def remarks(title: str, lines: Sequence[str], *, style: str) -> RenderableType:
    """A list of sentences, or nothing."""
    if not lines:
        return Group()
    return Group(Text(f"{title}:", style=style), *(Text(f"  - {line}") for line in lines))
