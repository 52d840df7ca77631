"""Error statistics over scored cases."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from costmodel.calibration.case import Case
from costmodel.calibration.score import METRICS, Scored, Skipped, score_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors of one metric.

    median, mean, p90, worst: of the absolute error. bias: median of the signed error
    (positive: predicted too much). worst_id: the case with the largest absolute error.
    """

    n: int
    median: float
    mean: float
    p90: float
    worst: float
    bias: float
    worst_id: str


def errors(scored: Iterable[Scored], metric: str) -> Errors | None:
    """Errors of the cases that measured this metric; None if there is none."""
    rows = [(s.pairs[metric].error, s.case.id) for s in scored if metric in s.pairs]
    if not rows:
        return None
    signed = np.array([error for error, _ in rows])
    absolute = np.abs(signed)
    worst = int(absolute.argmax())
    return Errors(
        n=len(rows),
        median=float(np.median(absolute)),
        mean=float(absolute.mean()),
        p90=float(np.quantile(absolute, 0.9)),
        worst=float(absolute[worst]),
        bias=float(np.median(signed)),
        worst_id=rows[worst][1],
    )


def worst_cases(scored: Iterable[Scored], metric: str, count: int) -> list[Scored]:
    """The cases with the largest absolute error, largest first."""
    rows = [s for s in scored if metric in s.pairs]
    return sorted(rows, key=lambda s: -abs(s.pairs[metric].error))[:count]


def reasons(skipped: Sequence[Skipped]) -> Mapping[str, int]:
    """How many cases each reason left out, most frequent first."""
    counts = Counter(s.reason for s in skipped)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def groups(cases: Iterable[Case]) -> Mapping[str, list[Case]]:
    """Cases by source, in order; small test models apart where the case says which they are."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        toy = case.model.flag("toy")
        suffix = "" if toy is None else ", small models" if toy else ", large models"
        found.setdefault(case.source + suffix, []).append(case)
    return found


Document = dict[str, Any]


def report(cases: Iterable[Case], *, min_quality: str = "B") -> dict[str, Document]:
    """By group: rows, scored, skipped by reason, and the errors of each metric, as JSON values."""
    return {name: _report(rows, min_quality) for name, rows in groups(cases).items()}


def _report(cases: Sequence[Case], min_quality: str) -> Document:
    scored, skipped = score_all(cases, min_quality=min_quality)
    found = {metric: errors(scored, metric) for metric in METRICS}
    return {
        "rows": len(cases),
        "scored": len(scored),
        "skipped": dict(reasons(skipped)),
        "assumed": dict(Counter(a for s in scored for a in s.assumptions)),
        **{metric: asdict(values) for metric, values in found.items() if values is not None},
    }
