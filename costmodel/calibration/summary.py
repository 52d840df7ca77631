"""Error statistics over scored cases."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from costmodel.calibration.score import Scored, Skipped


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
