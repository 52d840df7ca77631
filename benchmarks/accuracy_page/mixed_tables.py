"""Runs on mixed and small clusters, to which no constant was fitted."""

from collections import defaultdict

import numpy as np

from benchmarks.accuracy_page.cells import share, table
from benchmarks.accuracy_page.time_tables import Findings


def mixed(findings: Findings) -> str:
    """By chip: rows, median error, and the spread."""
    errors: dict[str, list[float]] = defaultdict(list)
    for row in findings["as shipped"]["facts"]:
        if row["mixed"] and "time" in row["errors"]:
            errors[row["chip"] or "mixed"].append(row["errors"]["time"])
    if not errors:
        return "None among these rows."
    rows = [
        [name, str(len(own)), *(share(float(np.quantile(own, q)), sign=True) for q in (0.5, 0, 1))]
        for name, own in sorted(errors.items())
    ]
    return table(["chips", "rows", "median error", "least", "largest"], rows)


def source(findings: Findings, part: str) -> str:
    """Mean and median absolute error of one source's rows, as shipped."""
    facts = findings["as shipped"]["facts"]
    own = [abs(row["errors"]["time"]) for row in facts if _is_of(row, part)]
    if not own:
        return "no row"
    return f"mean {share(float(np.mean(own)))}, median {share(float(np.median(own)))} of {len(own)}"


def _is_of(row: Findings, part: str) -> bool:
    return part in row["source"] and "time" in row["errors"]
