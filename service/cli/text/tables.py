"""The look that all tables share."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

MOST_OF_A_WORD = 12
"""A column of words is never narrower than its longest word or this."""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[RenderableType]]) -> Table:
    """A table whose text columns wrap.

    A column whose name starts with `>` is set flush right, one with `=` flush left; neither wraps.
    """
    result = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        collapse_padding=True,
    )
    cells = [*rows]
    for index, column in enumerate(columns):
        whole = column.startswith((">", "="))
        result.add_column(
            column.lstrip(">="),
            justify="right" if column.startswith(">") else "left",
            no_wrap=whole,
            overflow="fold",
            min_width=None if whole else longest_word(row[index] for row in cells),
        )
    for row in cells:
        result.add_row(*row)
    return result


def longest_word(cells: Iterable[RenderableType]) -> int:
    """The width at which a column need not cut words, but for very long ones."""
    words = (word for cell in cells for word in str(cell).split())
    return min(MOST_OF_A_WORD, max(map(len, words), default=1))


def facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names and values in two columns."""
    result = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    result.add_column(style="dim", no_wrap=True)
    result.add_column(overflow="fold")
    for name, value in pairs:
        result.add_row(name, value)
    return result


def remarks(title: str, lines: Sequence[str], *, style: str) -> RenderableType:
    """A list of sentences, or nothing."""
    if not lines:
        return Group()
    items = Table.grid(padding=(0, 1))
    items.add_column(no_wrap=True)
    items.add_column(overflow="fold")
    for line in lines:
        items.add_row("  -", Text(line))
    return Group(Text(f"{title}:", style=style), items)


def some(words: Sequence[str], *, separator: str = ", ", most: int = 8) -> str:
    """A list of words, cut when it is long."""
    more = [f"and {len(words) - most} more"] if len(words) > most else []
    return separator.join([*words[:most], *more])
