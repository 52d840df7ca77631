"""One test: do these prices pay for every template within a budget of seconds?

Every pair of offer and regime is cut into cells by the length of the longest stage. A cell closes
once its relaxed profits are at most zero for every number of stages and micro-batches; until then
other multipliers are tried, then the cell is cut finer, and what is left of narrow cells is listed.
Templates of open cells that really earn more than they cost are returned: the prices are wrong.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import repeat

import numpy as np

from planner.certificate.cell_terms import Regime
from planner.certificate.cells import Finding, Piece, Test, price_cells
from planner.certificate.columns import Columns, Shape

COARSE, MEDIUM, FINEST = 1.25, 1.03, 1.003
"""Ratio of a cell's ends: at first, when too many open cells are given up, and at last."""

CUTS, CHUNK, BATCH = 3, 12, 8
ENOUGH = 150
"""Breaking templates after which the prices are changed."""

MOST_OPEN = 250


class Verdict:
    """closed: the claim is proved. found: templates that break it; near: those that nearly do."""

    __slots__ = ("closed", "found", "near")

    def __init__(
        self, *, closed: bool, found: tuple[Shape, ...] = (), near: tuple[Shape, ...] = ()
    ) -> None:
        self.closed, self.found, self.near = closed, found, near


def sweep(
    columns: Columns, test: Test, expired: Callable[[], bool], *, narrowest: float = FINEST
) -> Verdict | None:
    """The verdict; None when the time is over first.

    narrowest: ratio of the ends of a cell below which none is cut again.
    """
    pieces, near = list(_pieces(columns, test)), dict[Shape, float]()
    while pieces:
        if pieces[0].ratio < narrowest:
            return Verdict(closed=False, near=_best(near))
        finding = Finding()
        left = _level(columns, test, pieces, finding, expired)
        if left is None:
            return None
        near |= finding.near
        if finding.found:
            return Verdict(closed=False, found=_best(finding.found))
        if _given_up(left):
            return Verdict(closed=False, near=_best(near))
        pieces = [_finer(piece) for piece in left]
    return Verdict(closed=True)


def seeds(columns: Columns, test: Test, expired: Callable[[], bool]) -> tuple[Shape, ...]:
    """Templates that do best at these prices, from the first coarse cells."""
    finding = Finding()
    for piece in _pieces(columns, test):
        for part in _chunks(piece):
            met = len(finding.found) + len(finding.near)
            if met < 2 * ENOUGH and not expired():
                price_cells(columns, test, part, finding, expired)
    return _best(finding.found | finding.near)


def _best(shapes: dict[Shape, float]) -> tuple[Shape, ...]:
    return tuple(sorted(shapes, key=lambda shape: -shapes[shape])[: 2 * ENOUGH])


def _level(
    columns: Columns,
    test: Test,
    pieces: list[Piece],
    finding: Finding,
    expired: Callable[[], bool],
) -> list[Piece] | None:
    """What stays open of these cells; None when the time is over."""
    left: list[Piece] = []
    parts = [part for piece in pieces for part in _chunks(piece)]
    for start in range(0, len(parts), BATCH):
        if expired():
            return None
        for still, met in _priced(columns, test, parts[start : start + BATCH], expired):
            finding.found |= met.found
            finding.near |= met.near
            left += [still] if still is not None else []
        over = bool(left) and left[-1].ratio <= FINEST
        if len(finding.found) >= ENOUGH or (over and not finding.found):
            break
    return left


def _priced(
    columns: Columns, test: Test, parts: list[Piece], expired: Callable[[], bool]
) -> Iterator[tuple[Piece | None, Finding]]:
    """The open cells of each part, and what was met there; the parts are priced side by side."""
    findings = [Finding() for _ in parts]
    jobs = (repeat(columns), repeat(test), parts, findings, repeat(expired))
    yield from zip(_workers().map(price_cells, *jobs), findings, strict=True)


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0)))


def _given_up(left: list[Piece]) -> bool:
    """Whether open cells are as narrow as they get, or narrow and too many."""
    ratio = max((piece.ratio for piece in left), default=COARSE)
    many = sum(len(piece.low_s) for piece in left) > MOST_OPEN
    return bool(left) and (ratio <= FINEST or (many and ratio < MEDIUM))


def _pieces(columns: Columns, test: Test) -> Iterator[Piece]:
    relaxed = columns.relaxed
    for index, priced in enumerate(relaxed.offers):
        layer = float(priced.offer.work.min())
        least = max(layer, layer * relaxed.layers / relaxed.deepest) * (1 - 1e-9)
        for regime in _regimes(columns, priced.samples):
            high = test.budget_s / max(1, 2 if regime.deep else regime.least)
            if high <= least:
                continue
            count = int(np.ceil(np.log(high / least) / np.log(COARSE)))
            edges = high * COARSE ** -np.arange(count + 1.0)
            top = np.maximum(np.floor(test.budget_s / edges[1:]), 1.0).astype(np.int64)
            yield Piece(
                offer=index,
                regime=regime,
                low_s=edges[1:],
                high_s=edges[:-1],
                reference=top if regime.deep else np.minimum(top, regime.most),
                shut=np.zeros((count, relaxed.deepest + 1, 1), np.bool_),
            )


def _regimes(columns: Columns, samples: int) -> Iterator[Regime]:
    """m beyond the stages; otherwise, and with GPipe always, m in [g, 2 g) for powers of two g."""
    most, deepest = columns.batch // samples, columns.relaxed.deepest
    if not columns.piped:
        yield Regime(True, 0, most, False)
    largest = most if columns.piped else min(most, deepest)
    least = 1
    while least <= largest:
        yield Regime(False, least, min(2 * least - 1, largest), columns.piped)
        least *= 2


def _chunks(piece: Piece) -> Iterator[Piece]:
    for start in range(0, len(piece.low_s), CHUNK):
        yield piece.only(np.arange(start, min(start + CHUNK, len(piece.low_s))))


def _finer(piece: Piece) -> Piece:
    step = np.repeat((piece.high_s / piece.low_s) ** (1 / CUTS), CUTS)
    place = np.tile(np.arange(CUTS), len(piece.low_s))
    low = np.repeat(piece.low_s, CUTS) * step**place
    return Piece(
        offer=piece.offer,
        regime=piece.regime,
        low_s=low,
        high_s=low * step * (1 + 1e-12),
        reference=np.repeat(piece.reference, CUTS),
        shut=np.repeat(piece.shut, CUTS, axis=0),
    )
