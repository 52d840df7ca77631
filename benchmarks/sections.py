"""Sections of a page between markers, each written by a command of its own."""

from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def write_section(name: str, text: str, page: Path = PAGE) -> None:
    """The page with the section of this name replaced, or added at its end."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    body = f"{begin}\n{text.strip()}\n{end}"
    old = page.read_text(encoding="utf-8") if page.exists() else "# Benchmarks\n"
    if begin in old:
        before, rest = old.split(begin, 1)
        body = before + body + rest.split(end, 1)[1]
    else:
        body = f"{old.rstrip()}\n\n{body}\n"
    page.write_text(body, encoding="utf-8")


def markdown_table(heads: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
