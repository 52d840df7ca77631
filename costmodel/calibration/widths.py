"""Widths of the 90 % intervals: split-conformal quantiles of runs that a fit has not seen.

A prediction's regime is its utilisation of the chip's 16-bit peak: what runs far below that
depends on more that a case does not state. A stack with enough runs of its own has its own widths.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp

from costmodel.software.intervals import REGIME_EDGES, regime

COVERAGE = 0.9

OWN_ROWS = 10
"""Runs of one stack and regime from which the stack has a width of its own."""

Widths = tuple[float, ...]
OwnWidths = tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """How far one prediction was off: |ln(measured / predicted)|. mfu: predicted."""

    stack: str
    mfu: float
    log_ratio: float


def quantile(values: Sequence[float]) -> float:
    """The conformal 90 % quantile: the ceil(0.9 (n + 1))-th smallest, at most the largest."""
    return _quantile(values, [1.0] * len(values))


def _quantile(values: Sequence[float], weights: Sequence[float]) -> float:
    """The smallest value below or at which 90 % of the weight lies, a run to come counted as the
    mean one (Tibshirani et al. 2019, weighted conformal prediction)."""
    ordered = sorted(zip(values, weights, strict=True))
    needed = COVERAGE * (sum(weights) + sum(weights) / len(weights)) - 1e-9
    total = accumulate(weight for _, weight in ordered)
    reached = (value for (value, _), so_far in zip(ordered, total, strict=True) if so_far >= needed)
    return next(reached, ordered[-1][0])


def pooled_widths(misses: Sequence[Miss]) -> Widths:
    """Relative half-width by regime; in each, all stacks count alike, whatever their runs.

    A regime without runs has the width of the widest.
    """
    found: dict[int, float] = {}
    for at in range(len(REGIME_EDGES) + 1):
        here = [miss for miss in misses if regime(miss.mfu) == at]
        if here:
            rows = Counter(miss.stack for miss in here)
            weights = [1.0 / rows[miss.stack] for miss in here]
            found[at] = exp(_quantile([miss.log_ratio for miss in here], weights)) - 1.0
    widest = max(found.values(), default=1.0)
    return tuple(found.get(at, widest) for at in range(len(REGIME_EDGES) + 1))


def own_widths(misses: Iterable[Miss]) -> dict[str, OwnWidths]:
    """By stack and regime, where there are enough runs; None elsewhere."""
    runs: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for miss in misses:
        runs[miss.stack][regime(miss.mfu)].append(miss.log_ratio)
    found = {stack: tuple(map(_own_width, _by_regime(own))) for stack, own in sorted(runs.items())}
    return {stack: widths for stack, widths in found.items() if any(widths)}


def _by_regime(runs: Mapping[int, list[float]]) -> list[list[float]]:
    return [runs.get(at, []) for at in range(len(REGIME_EDGES) + 1)]


def _own_width(values: Sequence[float]) -> float | None:
    return exp(quantile(values)) - 1.0 if len(values) >= OWN_ROWS else None
