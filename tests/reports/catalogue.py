"""The rows of user reports, which test has which, and the page made of them.

``python -m tests.reports.catalogue`` writes ``docs/user-reports.md``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import yaml

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "user-reports.md"
HEAD = "| # | report | input | verdict | test |\n|---|---|---|---|---|\n"
Test = TypeVar("Test", bound=Callable[..., None])

INTRODUCTION = """# User reports as tests

What people who plan parallel training ran into, from public threads, and the verdict that haplan
gives. Every row with a verdict is a test in `tests/reports/`; where a row or a part of it is none,
the reason stands instead. Reports on FLOPs are tests of the model graph (`tests/model/`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One report: the thread, what was planned, the verdict, and why it is not (wholly) a test."""

    section: str
    id: str
    report: str
    input: str
    verdict: str = ""
    untested: str = ""


def report(*ids: str) -> Callable[[Test], Test]:
    """Marks a test as the one of these rows."""

    def mark(test: Test) -> Test:
        vars(test)["reports"] = ids
        return test

    return mark


def rows() -> tuple[Row, ...]:
    """All rows, in order."""
    sections: list[dict[str, Any]] = yaml.safe_load((HERE / "rows.yaml").read_text("utf-8"))
    return tuple(
        Row(section=section["section"], **row) for section in sections for row in section["rows"]
    )


def covered() -> dict[str, str]:
    """Row -> name of its test."""
    return dict(_covered())


def _covered() -> Iterator[tuple[str, str]]:
    for path in sorted(HERE.glob("test_*.py")):
        module = import_module(f"tests.reports.{path.stem}")
        for name, value in vars(module).items():
            if name.startswith("test_"):
                yield from ((row, name) for row in getattr(value, "reports", ()))


def page() -> str:
    """The page: one table for each section."""
    names, text = covered(), INTRODUCTION
    section = ""
    for row in rows():
        if row.section != section:
            section = row.section
            text += f"\n## {section}\n\n{HEAD}"
        test = f"`{names[row.id]}`" if row.id in names else ""
        remark = f"Not tested: {row.untested}." if row.untested else ""
        cells = (row.id, row.report, row.input, row.verdict, " ".join(filter(None, (test, remark))))
        text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
