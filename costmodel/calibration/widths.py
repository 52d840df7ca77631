"""Widths of the 90 % intervals: split-conformal quantiles of runs that a fit has not seen.

How far predictions are usually off differs between regimes of the predicted utilisation and between
stacks, so every miss is measured in a scale of its regime, or of its stack's where that has enough
runs, and one factor, the 90 % quantile of all such scores, widens every scale to an interval
(locally weighted conformal inference, Lei et al. 2018, arXiv 1604.04173, section 5.2). Coverage
holds over all runs, not in each regime. Stacks count alike, whatever their runs.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp

from costmodel.software.intervals import REGIME_EDGES, regime

COVERAGE = 0.9

USUAL = 0.8
"""Share of misses that lie within a scale: fewer than the coverage, so that a few stalled runs of
one regime do not set its scale."""

OWN_ROWS = 10
"""Runs of one stack and regime from which the stack has a scale of its own there."""

LEAST_SCALE = 1e-3

Widths = tuple[float, ...]
OwnWidths = tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """How far one prediction was off: |ln(measured / predicted)|. mfu: predicted.

    fold: of the stack's models that the prediction has not seen, None if it has seen none.
    """

    stack: str
    mfu: float
    log_ratio: float
    fold: int | None = None

    @property
    def regime(self) -> int:
        """That of the predicted utilisation."""
        return regime(self.mfu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A miss beside a scale that it has no part in."""

    miss: Miss
    scale: float

    @property
    def score(self) -> float:
        """Scales that it was off by."""
        return self.miss.log_ratio / self.scale


def quantile(values: Sequence[float], share: float = COVERAGE) -> float:
    """A conformal quantile: the ceil(share (n + 1))-th smallest, at most the largest."""
    return _quantile(values, [1.0] * len(values), share)


def _quantile(values: Sequence[float], weights: Sequence[float], share: float) -> float:
    """The smallest value below or at which a share of the weight lies, a run to come counted as the
    mean one (Tibshirani et al. 2019, weighted conformal prediction)."""
    ordered = sorted(zip(values, weights, strict=True))
    needed = share * (sum(weights) + sum(weights) / len(weights)) - 1e-9
    total = accumulate(weight for _, weight in ordered)
    reached = (value for (value, _), so_far in zip(ordered, total, strict=True) if so_far >= needed)
    return next(reached, ordered[-1][0])


def _of_stacks(values: Sequence[float], misses: Sequence[Miss], share: float) -> float:
    """A quantile in which every stack counts alike."""
    rows = Counter(miss.stack for miss in misses)
    return _quantile(values, [1.0 / rows[miss.stack] for miss in misses], share)


def scales(misses: Sequence[Miss]) -> Widths:
    """Usual size of a miss by regime. A regime without runs has that of the widest."""
    found: dict[int, float] = {}
    for at in range(len(REGIME_EDGES) + 1):
        here = [miss for miss in misses if miss.regime == at]
        if here:
            found[at] = _of_stacks([miss.log_ratio for miss in here], here, USUAL)
    widest = max(found.values(), default=1.0)
    return tuple(max(found.get(at, widest), LEAST_SCALE) for at in range(len(REGIME_EDGES) + 1))


def own_scale(misses: Sequence[Miss], at: int) -> float | None:
    """Usual size of one stack's misses in a regime, None where it has too few runs there."""
    here = [miss.log_ratio for miss in misses if miss.regime == at]
    return max(quantile(here, USUAL), LEAST_SCALE) if len(here) >= OWN_ROWS else None


def scored(misses: Sequence[Miss]) -> list[Scored]:
    """Every miss beside the scale of its stack's other folds, else of the other stacks."""
    found: list[Scored] = []
    for stack in sorted({miss.stack for miss in misses}):
        others = scales([miss for miss in misses if miss.stack != stack])
        same = [miss for miss in misses if miss.stack == stack]
        for fold in sorted({miss.fold for miss in same}, key=str):
            rest = [m for m in same if fold is not None and m.fold != fold]
            own = [own_scale(rest, at) for at in range(len(REGIME_EDGES) + 1)]
            here = [miss for miss in same if miss.fold == fold]
            found += [Scored(miss=m, scale=own[m.regime] or others[m.regime]) for m in here]
    return found


def factor(scores: Sequence[Scored]) -> float:
    """What makes a scale an interval: the 90 % quantile of the scores."""
    return _of_stacks([one.score for one in scores], [one.miss for one in scores], COVERAGE)


def half_widths(misses: Sequence[Miss]) -> list[float]:
    """Relative half-width for every miss, from scales and factors that it has no part in."""
    scores = scored(misses)
    by_stack = {
        stack: factor([one for one in scores if one.miss.stack != stack] or scores)
        for stack in {miss.stack for miss in misses}
    }
    widths = {id(s.miss): exp(by_stack[s.miss.stack] * s.scale) - 1.0 for s in scores}
    return [widths[id(miss)] for miss in misses]


def pooled_widths(misses: Sequence[Miss]) -> Widths:
    """Relative half-width by regime, for stacks without scales of their own."""
    times = factor(scored(misses))
    return tuple(exp(times * scale) - 1.0 for scale in scales(misses))


def own_widths(misses: Sequence[Miss]) -> dict[str, OwnWidths]:
    """By stack and regime, where there are enough runs; None elsewhere."""
    times = factor(scored(misses))
    found: dict[str, OwnWidths] = {}
    for stack in sorted({miss.stack for miss in misses}):
        same = [miss for miss in misses if miss.stack == stack]
        own = [own_scale(same, at) for at in range(len(REGIME_EDGES) + 1)]
        if any(own):
            found[stack] = tuple(exp(times * s) - 1.0 if s else None for s in own)
    return found
