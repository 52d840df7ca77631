"""The table of what each term is worth."""

from benchmarks.accuracy_page.cells import NONE, share, table
from benchmarks.accuracy_page.time_tables import Findings

LARGEST = 3
"""Stacks that are named for a term."""


def ablation(removed: Findings | None) -> str:
    """A line a term, the whole model first. removed: None where it was not run."""
    if removed is None:
        return "Not run for this page."
    whole = "mean of stacks / median / mean"
    head = [
        "taken away",
        *(f"{view}: {how}{whole}" for view in removed["views"] for how in ("", "refitted ")),
        "stacks that lose most (known, refitted: median)",
    ]
    rows = [_line(removed, term) for term in removed["terms"]]
    return f"At most {removed['most']} evenly spaced rows of a stack:\n\n{table(head, rows)}"


def _line(removed: Findings, term: Findings) -> list[str]:
    cells = [_three(term[view][how]) for view in removed["views"] for how in ("plain", "refitted")]
    return [term["name"], *cells, _losers(removed["terms"][0], term)]


def _three(found: Findings) -> str:
    return " / ".join(share(found[key]) for key in ("macro", "median", "mean"))


def _losers(whole: Findings, term: Findings) -> str:
    before, after = (one["known stack"]["refitted"]["stacks"] for one in (whole, term))
    losses = sorted(((after[name] - before[name], name) for name in after), reverse=True)
    named = [f"{name} +{100 * loss:.1f}" for loss, name in losses[:LARGEST] if loss > 0.002]
    return ", ".join(named) or NONE
