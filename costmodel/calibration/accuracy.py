"""The document of ``haplan accuracy``: how close predictions are to measured cases."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costmodel.calibration.case import Case
from costmodel.calibration.score import Scored, Skipped, score_all
from costmodel.software.intervals import relative_half_width
from costmodel.software.read import profile_names
from costmodel.software.values import Efficiency

Document = dict[str, Any]

MACRO_ROWS = 20
"""A stack counts in ``macro_median`` from this many scored rows."""

UNNAMED = "unnamed"
"""Stack of the cases that name none."""

REGRET_ROWS = 8
"""Rows of a group that differ only in layout for its regret to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scored case. error: signed and relative, by metric. half_width: h of its interval
    ``[T / (1 + h), T (1 + h)]``."""

    id: str
    stack: str
    group: str
    tuned: bool
    errors: Mapping[str, float]
    predicted_s: float
    measured_s: float
    half_width: float
    assumptions: tuple[str, ...]

    @property
    def relative_width(self) -> float:
        """Half of the interval's length over the predicted time: ``(1 + h - 1 / (1 + h)) / 2``."""
        return (1.0 + self.half_width - 1.0 / (1.0 + self.half_width)) / 2.0

    @property
    def covered(self) -> bool:
        """Whether the measured time lies inside the interval of the predicted one."""
        ratio = self.measured_s / self.predicted_s
        return 1.0 / (1.0 + self.half_width) <= ratio <= 1.0 + self.half_width


def accuracy(
    cases: Iterable[Case], *, min_quality: str = "B", efficiency: Efficiency | None = None
) -> Document:
    """The whole document. efficiency: constants for all cases, else those of each one's stack."""
    scored, skipped = score_all(cases, min_quality=min_quality, efficiency=efficiency)
    rows = [row_of(found) for found in scored]
    return accuracy_document(rows, skipped) | {"runs": [run_document(row) for row in rows]}


def run_document(row: Row) -> Document:
    """One scored case: its errors by metric, both step times and what was assumed."""
    width, seconds = 1.0 + row.half_width, row.predicted_s
    return {
        "id": row.id,
        "stack": row.stack,
        "measured_s": row.measured_s,
        "predicted_s": seconds,
        "interval_s": [seconds / width, seconds * width],
        "errors": dict(row.errors),
        "assumptions": list(row.assumptions),
    }


def accuracy_document(rows: Sequence[Row], skipped: Sequence[Skipped]) -> Document:
    """The document of rows that are scored already."""
    stacks: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        stacks[row.stack].append(row)
    return {
        "rows": len(rows) + len(skipped),
        "scored": len(rows),
        "skipped": [{"id": s.case.id, "reason": s.reason} for s in skipped],
        **_figures(rows),
        "by_stack": {
            name: {
                "scored": len(own),
                **_figures(own),
                "assumptions": dict(Counter(a for row in own for a in row.assumptions)),
            }
            for name, own in sorted(stacks.items())
        },
    }


def row_of(found: Scored) -> Row:
    """What the figures need of one scored case."""
    prepared, time = found.prepared, found.pairs.get("time")
    stack = prepared.case.stack or UNNAMED
    return Row(
        id=prepared.case.id,
        stack=stack,
        group=layout_group(prepared.case),
        tuned=prepared.tuned,
        errors={metric: pair.error for metric, pair in found.pairs.items()},
        predicted_s=time.predicted if time else 0.0,
        measured_s=time.measured if time else 0.0,
        half_width=relative_half_width(
            predicted_mfu(found), stack=stack if stack in profile_names() else ""
        ),
        assumptions=found.assumptions,
    )


def predicted_mfu(found: Scored) -> float:
    """Model FLOPs over the 16-bit peak at the predicted time; 0 where no time was measured."""
    time, mfu = found.pairs.get("time"), found.prepared.mfu
    return mfu * time.measured / time.predicted if time and mfu else 0.0


def layout_group(case: Case) -> str:
    """What cases share that differ only in layout."""
    model = {key: case.model.values.get(key) for key in ("layers", "hidden", "ffn_hidden", "heads")}
    shared = (
        case.stack,
        sorted(model.items()),
        [case.model.values.get(key) for key in ("vocab", "seq", "experts")],
        case.hardware.values.get("chip"),
        case.hardware.values.get("n_chips"),
        [case.parallel.values.get(key) for key in ("gbs", "precision", "method")],
    )
    return repr(shared)


def _figures(rows: Sequence[Row]) -> Document:
    timed = [row for row in rows if "time" in row.errors]
    return {
        "time": statistics(timed, "time"),
        "time_tuned": statistics([r for r in timed if r.tuned], "time"),
        "time_untuned": statistics([r for r in timed if not r.tuned], "time"),
        "memory": statistics(rows, "peak"),
        "static_memory": statistics(rows, "static"),
        "regret": regret(timed),
        "coverage": float(np.mean([row.covered for row in timed])) if timed else None,
        "half_width": float(np.median([row.relative_width for row in timed])) if timed else None,
    }


def statistics(rows: Iterable[Row], metric: str) -> Document:
    """Relative errors of one metric: absolute, but for ``bias``, the signed median."""
    measured = [row for row in rows if metric in row.errors]
    if not measured:
        return {"n": 0}
    signed = np.array([row.errors[metric] for row in measured])
    absolute = np.abs(signed)
    return {
        "n": len(measured),
        "mape": float(absolute.mean()),
        "median_ape": float(np.median(absolute)),
        "p90_ape": float(np.quantile(absolute, 0.9)),
        "bias": float(np.median(signed)),
        "macro_median": macro_median(measured, metric),
    }


def macro_median(rows: Sequence[Row], metric: str) -> float | None:
    """Mean over stacks with enough rows of each stack's median error."""
    by_stack: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        by_stack[row.stack].append(abs(row.errors[metric]))
    medians = [np.median(values) for values in by_stack.values() if len(values) >= MACRO_ROWS]
    return float(np.mean(medians)) if medians else None


def regret(rows: Iterable[Row]) -> Document:
    """What choosing the layout predicted fastest loses against the one measured fastest.

    Per group of at least eight rows that differ only in layout: 1 - best measured time / measured
    time of the choice.
    """
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    losses = [_loss(group) for group in groups.values() if len(group) >= REGRET_ROWS]
    if not losses:
        return {"groups": 0}
    return {
        "groups": len(losses),
        "mean": float(np.mean(losses)),
        "median": float(np.median(losses)),
        "p90": float(np.quantile(losses, 0.9)),
    }


def _loss(group: Sequence[Row]) -> float:
    choice = min(group, key=lambda row: (row.predicted_s, row.id))
    return 1.0 - min(row.measured_s for row in group) / choice.measured_s
