"""Compiles the certificate's loops before a clock starts (kept on disk, as all kernels are)."""

from functools import cache

import numpy as np

from planner.certificate.cell_terms import Regime
from planner.certificate.cells import Finding, Piece, Test, price_cells
from planner.certificate.columns import Columns
from planner.certificate.offers import Priced, Relaxation
from planner.certificate.relaxed import Offer


@cache
def make_ready() -> None:
    """Prices and lists the one template of one option that holds two layers."""
    one, rooms = np.ones(1), np.full((1, 3), 2)
    none, tail = np.zeros(1), np.zeros((1, 3))
    offer = Offer(
        work=one,
        forward=0.5 * one,
        first_work=none,
        first_forward=none,
        last_work=none,
        last_forward=none,
        hand_over=none,
        tail=tail,
        inner=rooms,
        first=rooms,
        last=rooms,
        alone=rooms,
    )
    kind, chips = np.zeros(1, np.int64), np.ones(1, np.int64)
    priced = Priced(samples=1, offer=offer, rows=kind, kind=kind, chips=chips)
    relaxed = Relaxation(offers=(priced,), kinds=(0,), chips=np.ones(1), deepest=2, layers=2)
    columns = Columns(relaxed=relaxed, batch=4, piped=False)
    piece = Piece(
        offer=0,
        regime=Regime(True, 0, 4, False),
        low_s=1.999 * one,
        high_s=2.001 * one,
        reference=np.full(1, 4),
        shut=np.zeros((1, 3, 1), np.bool_),
    )
    price_cells(
        columns, Test(budget_s=8.5, prices=np.ones(1), toll=0.0), piece, Finding(), lambda: False
    )
