"""What a cell is, and the terms of its costs that pricing and enumeration share (kernels)."""

from typing import NamedTuple

import numba as nb

from planner.arrays import FloatArray, IntArray
from planner.certificate.relaxed import Offer

NONE = 1e18
"""Cost of what does not exist."""

ROUND = 1e-9
"""Relative allowance for rounding."""


class Cells(NamedTuple):
    """Cells of one offer, arrays of equal length (R,).

    low_s, high_s: interval of the longest stage; price: multiplier, sequences per second; weight:
    of the stages after it, 0 to 2; reference: micro-batches that the costs count.
    """

    low_s: FloatArray
    high_s: FloatArray
    price: FloatArray
    weight: FloatArray
    reference: IntArray


class Cell(NamedTuple):
    """One of ``Cells``."""

    low_s: float
    high_s: float
    price: float
    weight: float
    reference: int


class Regime(NamedTuple):
    """Which numbers of micro-batches m, and what they mean.

    deep: m > stages; otherwise least <= m <= most and, unless gpipe, m <= stages. gpipe: all m are
    in flight, and no later forward runs before the first backward returns.
    """

    deep: bool
    least: int
    most: int
    gpipe: bool


class Goal(NamedTuple):
    """What a template earns: ``samples`` per micro-batch within ``budget_s``, less ``toll``."""

    samples: int
    budget_s: float
    toll: float
    batch: int


class Case(NamedTuple):
    """What is priced: an offer, what the chips of its options cost (O,), worth and regime."""

    offer: Offer
    tolls: FloatArray
    goal: Goal
    regime: Regime


@nb.njit(cache=True, nogil=True)
def value(goal: Goal, cell: Cell, m: int) -> float:
    """Upper bound on profit plus cost of a template with m micro-batches in the cell."""
    more = m - cell.reference
    tau = cell.low_s if more >= 0 else cell.high_s
    return goal.samples * m - goal.toll + cell.price * (goal.budget_s - more * tau)


@nb.njit(cache=True, nogil=True)
def span(case: Case, cell: Cell, stages: int) -> tuple[int, int]:
    """Smallest and largest m of templates with so many stages in the cell."""
    goal, regime = case.goal, case.regime
    top = int(min(goal.batch // goal.samples, goal.budget_s / cell.low_s * (1 + ROUND)))
    if regime.deep:
        return stages + 1, top
    top = min(top, regime.most)
    return regime.least, (top if regime.gpipe else min(top, stages))


@nb.njit(cache=True, nogil=True)
def kept_at(regime: Regime, j: int, deepest: int) -> int:
    """Micro-batches in flight at position j from the end, at least."""
    if regime.gpipe:
        return min(regime.least, deepest)
    return min(j, deepest) if regime.deep else min(j, regime.least)


@nb.njit(cache=True, nogil=True)
def warm_at(regime: Regime, j: int) -> int:
    """Forwards that may fill the wait for the first backward at position j, at most."""
    if regime.gpipe:
        return 0
    return (j if regime.deep else min(j, regime.most)) - 1


@nb.njit(cache=True, nogil=True)
def room(offer: Offer, o: int, j: int, kept: int, first: bool) -> int:
    """Most layers of a stage at position j."""
    if j == 1:
        return int(offer.alone[o, kept] if first else offer.last[o, kept])
    return int(offer.first[o, kept] if first else offer.inner[o, kept])


@nb.njit(cache=True, nogil=True)
def end_seconds(offer: Offer, o: int, j: int, first: bool) -> tuple[float, float]:
    """F + B and F of the ends of the model on a stage."""
    work, ahead = 0.0, 0.0
    if first:
        work, ahead = offer.first_work[o], offer.first_forward[o]
    if j == 1:
        return work + offer.last_work[o], ahead + offer.last_forward[o]
    return work, ahead


@nb.njit(cache=True, nogil=True)
def idle_saved(weight: float, work: float, ahead: float) -> float:
    """What one more forward or backward in the warm-up takes off the bound (lemma 2)."""
    less = min(ahead, work - ahead)
    return weight * less if weight <= 1.0 else less + (weight - 1.0) * (work - less)


@nb.njit(cache=True, nogil=True)
def cell_of(cells: Cells, r: int) -> Cell:
    """One cell."""
    return Cell(
        cells.low_s[r], cells.high_s[r], cells.price[r], cells.weight[r], cells.reference[r]
    )
