"""The worst rows, what their cases say, and why they miss: by kind of run, not by score."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from benchmarks.accuracy_page.cells import share, table
from benchmarks.accuracy_page.time_tables import Findings
from costmodel.safe_document import load_document

KINDS = Path(__file__).with_name("kinds_of_runs.yaml")
UNEXPLAINED = "no cause known"
WORST = 10


def worst(findings: Findings) -> str:
    """The tuned rows with the largest errors under their stack's profile, largest first."""
    shipped = findings["as shipped"]
    tuned = [row for row in shipped["facts"] if row["tuned"] and "time" in row["errors"]]
    rows = sorted(tuned, key=lambda row: (-abs(row["errors"]["time"]), row["id"]))[:WORST]
    kinds = load_document(KINDS.read_bytes())["kinds"]
    head = ["run", "error", "held out: known / unknown", "the case says", "why"]
    return table(head, [_row(findings, row, kinds) for row in rows])


def _row(findings: Findings, row: Findings, kinds: Sequence[Findings]) -> list[str]:
    held = [_error(findings, view, row) for view in ("known stack", "unknown stack")]
    name = f"[{row['id']}]({row['url']})" if row["url"] else row["id"]
    return [
        f"{row['model']}, {row['chips']} x {row['chip']}, {row['stack']} ({name})",
        share(row["errors"]["time"], sign=True),
        " / ".join(share(error, sign=True) for error in held),
        says(row),
        explanation(row, kinds),
    ]


def _error(findings: Findings, view: str, row: Findings) -> float | None:
    found = findings[view]["predictions"].get(row["id"])
    return found[0] / row["measured_s"] - 1.0 if found else None


def says(row: Findings) -> str:
    """Precision, degrees and utilisation; then what was assumed."""
    parts = [row["precision"], row["method"], row["layout"], f"MFU {100 * row['mfu']:.0f} %"]
    told = ", ".join(part for part in parts if part)
    return f"{told}; assumed: {'; '.join(row['assumed'])}" if row["assumed"] else told


def explanation(row: Findings, kinds: Sequence[Findings]) -> str:
    """The first kind of run that the row is of."""
    return next((kind["why"] for kind in kinds if _is_of(row, kind["when"])), UNEXPLAINED)


def _is_of(row: Findings, when: dict[str, Any]) -> bool:
    """Whether each named fact contains one of the texts, or equals the value."""
    return all(_holds(row.get(key), wanted) for key, wanted in when.items())


def _holds(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_holds(value, one) for one in cast("list[Any]", wanted))
    if isinstance(wanted, str):
        return wanted.lower() in str(value).lower()
    return value == wanted
