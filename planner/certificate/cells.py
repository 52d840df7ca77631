"""Prices the cells of one offer and regime: several multipliers, then a list of what is left."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import local

import numpy as np
from numpy.typing import NDArray

from planner.arrays import FloatArray, IntArray
from planner.certificate.cell_terms import NONE, Case, Cell, Cells, Goal, Regime
from planner.certificate.columns import Columns, Shape
from planner.certificate.enumeration_kernel import BROKEN, COMPLETE, OVERFLOW, enumerate_cell
from planner.certificate.label_kernel import Labels, empty_labels
from planner.certificate.pricing_kernel import cheapest, roof

TRIES, COARSE_TRIES = (2.0, 2.0, 1.0, 1.0, 0.0), (2.0, 0.0)
"""Weights of the tries; the multiplier is bisected from one to the next, at 0 it is none."""

WIDE, LISTED, NARROW, FINEST = 1.2, 1.03, 1.01, 1.003
PAIRS, WORK, LAST_WORK = 200, 30_000_000, 250_000_000
"""Most pairs of stages and micro-batches with labels; most extensions of labels of a cell."""

NODES, LAST_NODES = 1_000_000, 10_000_000
"""Most choices that a list looks at in a narrow cell and in one of the finest."""

HARVEST = 4
"""Numbers of stages whose templates are looked at in every cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """What is claimed: ``samples m <= prices' chips + toll`` for all m within ``budget_s``."""

    budget_s: float
    prices: FloatArray
    toll: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Cells of one offer and regime.

    reference: micro-batches that costs count, (R,). shut: pairs of stages and micro-batches that
    earn nothing, (R, P + 1, M + 1); what is not in it is open.
    """

    offer: int
    regime: Regime
    low_s: FloatArray
    high_s: FloatArray
    reference: IntArray
    shut: NDArray[np.bool_]

    @property
    def ratio(self) -> float:
        """Of the ends of a cell."""
        return float((self.high_s / self.low_s).max())

    def only(self, kept: IntArray) -> "Piece":
        """Some of the cells."""
        return Piece(
            offer=self.offer,
            regime=self.regime,
            low_s=self.low_s[kept],
            high_s=self.high_s[kept],
            reference=self.reference[kept],
            shut=self.shut[kept],
        )


@dataclass(slots=True, kw_only=True)
class Finding:
    """Templates met, with what they earn beyond their cost over what they earn; grows.

    found: those that break the claim; near: others.
    """

    found: dict[Shape, float] = field(default_factory=dict[Shape, float])
    near: dict[Shape, float] = field(default_factory=dict[Shape, float])


@dataclass(slots=True, kw_only=True)
class _State:
    """Of the cells of a piece: lowest roofs (R, P + 1, M + 1), multiplier and its bracket, (R,)."""

    profit: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray


def price_cells(
    columns: Columns, test: Test, piece: Piece, finding: Finding, expired: Callable[[], bool]
) -> Piece | None:
    """The cells that stay open, None if none do; once the time is over no more are listed."""
    case, state = _case(columns, test, piece), _state(columns, test, piece)
    here = np.arange(len(piece.low_s))
    for heaviest in COARSE_TRIES if piece.ratio > WIDE else TRIES:
        weight = heaviest if piece.regime.deep else min(heaviest, 1.0)
        scale = state.scale[here] * (heaviest > 0)
        cells = _cells(piece.only(here), case.goal.samples * scale, weight)
        best, stages = cheapest(case, cells, columns.relaxed.deepest)
        part = state.profit[here]
        roof(case, cells, best, part)
        state.profit[here] = part
        still = part.max(axis=(1, 2)) > 0
        here = here[still]
        if not len(here):
            return None
        short = _harvest(columns, test, piece, (part[still], best[still], stages[still]), finding)
        _bisect(state, here, short)
    if piece.ratio <= LISTED:
        here = _listed(case, piece, state, here, finding, expired)
    if not len(here):
        return None
    size = state.profit.shape[2]
    worst = state.profit[here].reshape(len(here), -1).argmax(axis=1) % size
    left = piece.only(here)
    return Piece(
        offer=left.offer,
        regime=left.regime,
        low_s=left.low_s,
        high_s=left.high_s,
        reference=np.maximum(1, worst),
        shut=state.profit[here] <= 0,
    )


def _case(columns: Columns, test: Test, piece: Piece) -> Case:
    priced = columns.relaxed.offers[piece.offer]
    goal = Goal(priced.samples, test.budget_s, test.toll, columns.batch)
    return Case(priced.offer, test.prices[priced.kind] * priced.chips, goal, piece.regime)


def _state(columns: Columns, test: Test, piece: Piece) -> _State:
    size, samples = len(piece.low_s), columns.relaxed.offers[piece.offer].samples
    most = min(int(test.budget_s / piece.low_s.min()) + 1, columns.batch // samples)
    profit = np.full((size, columns.relaxed.deepest + 1, most + 1), NONE)
    profit[:, 0] = profit[:, :, 0] = -NONE
    width = min(piece.shut.shape[2], most + 1)
    profit[:, :, :width][piece.shut[:, :, :width]] = -NONE
    return _State(
        profit=profit, scale=np.ones(size), low=np.zeros(size), high=np.full(size, np.inf)
    )


def _cells(piece: Piece, price: FloatArray, weight: float) -> Cells:
    weights = np.full(len(piece.low_s), weight)
    return Cells(piece.low_s, piece.high_s, price / piece.low_s, weights, piece.reference)


def _bisect(state: _State, here: IntArray, short: NDArray[np.bool_]) -> None:
    """Time costs more where the worst template takes too long, less where it does not."""
    state.low[here[short]] = state.scale[here[short]]
    state.high[here[~short]] = state.scale[here[~short]]
    low, high = state.low[here], state.high[here]
    known = np.isfinite(high)
    state.scale[here] = np.where(known, 0.5 * (low + np.where(known, high, 0.0)), 2.0 * low)


_OWN = local()


def _work_space(deepest: int, layers: int) -> Labels:
    """Labels of this thread, written anew by each use."""
    known: Labels | None = getattr(_OWN, "labels", None)
    if known is None or known.low.shape != (2, deepest + 1, layers + 1):
        known = _OWN.labels = empty_labels(deepest, layers)
    return known


Answer = tuple[FloatArray, FloatArray, NDArray[np.int32]]
"""Roofs, least costs and stages of cells."""


def _harvest(
    columns: Columns, test: Test, piece: Piece, answer: Answer, finding: Finding
) -> NDArray[np.bool_]:
    """Looks at the cheapest templates of the worst numbers of stages of every open cell.

    True where the worst one does not run the m of its highest roof: time is priced too low there.
    """
    heads = [_heads(piece.offer, *parts) for parts in zip(*answer, strict=True)]
    looked = Columns(relaxed=columns.relaxed, batch=columns.batch, piped=columns.piped)
    looked.add([shape for shapes, _ in heads for shape in shapes])
    if not looked.shapes:
        return np.ones(len(heads), np.bool_)
    gains = looked.gains(test.budget_s)
    earned = gains - looked.chips @ test.prices - test.toll
    for shape, index in looked.shapes.items():
        if gains[index] > 0 and shape not in columns.shapes:
            breaks = earned[index] > 1e-9 * gains[index]
            kept = finding.found if breaks else finding.near
            kept[shape] = float(earned[index] / gains[index])
    samples = columns.relaxed.offers[piece.offer].samples
    return np.array(
        [not s or gains[looked.shapes[s[0]]] < m * samples for s, m in heads], dtype=np.bool_
    )


def _heads(
    offer: int, profit: FloatArray, best: FloatArray, stages: NDArray[np.int32]
) -> tuple[list[Shape], int]:
    """Templates of the numbers of stages with the highest roofs, and the m of the highest."""
    over = profit.max(axis=1)
    order = np.argsort(-over, kind="stable")[:HARVEST]
    if best[order[0]] >= NONE / 2:
        return [], 0
    shapes = [
        (offer, tuple(stages[p, :p, 0].tolist()), tuple(stages[p, :p, 1].tolist()))
        for p in order
        if over[p] > 0 and best[p] < NONE / 2
    ]
    return shapes, int(profit[order[0]].argmax())


def _listed(
    case: Case,
    piece: Piece,
    state: _State,
    cells: IntArray,
    finding: Finding,
    expired: Callable[[], bool],
) -> IntArray:
    """The cells that enumeration does not close either."""
    left: list[int] = []
    last = piece.ratio <= FINEST
    nodes = LAST_NODES if last else NODES if piece.ratio <= NARROW else 0
    for r in cells.tolist():
        answer = OVERFLOW
        if np.count_nonzero(state.profit[r] > 0) <= PAIRS and not expired():
            answer = _enumerated(case, piece, state, r, nodes, finding)
        if answer != COMPLETE:
            left.append(r)
        if answer == OVERFLOW and last:
            break
    return np.array(left, np.int64)


def _enumerated(
    case: Case, piece: Piece, state: _State, r: int, nodes: int, finding: Finding
) -> int:
    weight = 2.0 if piece.regime.deep else 1.0
    low, high = float(piece.low_s[r]), float(piece.high_s[r])
    cell = Cell(low, high, float(state.scale[r]) * case.goal.samples / low, weight, 1)
    deepest, layers = state.profit.shape[1] - 1, case.offer.tail.shape[1] - 1
    space = _work_space(deepest, layers)
    space.left[0] = LAST_WORK if piece.ratio <= FINEST else WORK
    answer, stages, p = enumerate_cell(case, cell, state.profit[r], nodes, space)
    if answer == BROKEN:
        shape = piece.offer, tuple(stages[:p, 0].tolist()), tuple(stages[:p, 1].tolist())
        finding.found[shape] = 0.0
    return answer
