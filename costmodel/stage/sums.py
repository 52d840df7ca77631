"""Sums of a table's terms over runs of layers and end blocks, many stages at once."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from costmodel.layout.values import Stage
from costmodel.stage.table import FloatArray, StageTable, Terms

IntArray = NDArray[np.int64]
End = tuple[int, Terms]
"""A stage or chunk, by its place among the others, and an end block that it holds."""


def totals(
    table: StageTable,
    rows: Sequence[int],
    runs: Sequence[tuple[int, int, int]],
    ends: Sequence[End],
    names: Iterable[str],
) -> dict[str, FloatArray]:
    """Sums of these terms for stages or chunks, (len(rows),) each.

    rows: of the table, one for each sum. runs: (which sum, first layer, layer after the last).
    """
    at = np.array(rows)
    of, start, stop = np.array(runs, dtype=np.int64).reshape(-1, 3).T
    once = len(of) == len(at) and bool((of == np.arange(len(at))).all())
    places = [(n, int(at[n]), terms) for n, terms in ends]
    sums: dict[str, FloatArray] = {}
    for name in names:
        own = between(getattr(table.layers, name), at[of], start, stop)
        total = own if once else _by_place(of, own, len(at))
        for n, row, terms in places:
            total[n] += getattr(terms, name)[row]
        sums[name] = total
    return sums


def _by_place(of: IntArray, values: FloatArray, length: int) -> FloatArray:
    total = np.zeros(length)
    np.add.at(total, of, values)
    return total


def between(
    prefix: FloatArray, rows: IntArray, start: IntArray | int, stop: IntArray | int
) -> FloatArray:
    """Sums over layers [start, stop) from the prefix sums of these rows."""
    first, flat = rows * prefix.shape[1], prefix.reshape(-1)
    return flat[first + stop] - flat[first + start]


def ends_of(table: StageTable, stage: Stage) -> list[Terms]:
    """The end blocks that a stage holds."""
    ends = ((stage.embedding, table.embedding), (stage.head, table.head), (stage.mtp, table.mtp))
    return [terms for held, terms in ends if held]
