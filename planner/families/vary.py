"""Moves of whole stages: more or fewer in a pool, of another size, or pools in another order."""

from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np

from planner.arrays import IntArray
from planner.families.nodes import Field

Block = tuple[int, int]
"""Option row of the cell and number of stages, a run of a pool."""


def blocks_of(field: Field, rows: IntArray) -> list[Block]:
    """The runs of a chain; of options that differ in mode only the first of a run counts."""
    runs: list[Block] = []
    for _, group in groupby(rows.tolist(), key=lambda row: int(field.costs.pool[row])):
        members = list(group)
        runs.append((members[0], len(members)))
    return runs


def rows_of(blocks: list[Block]) -> IntArray:
    """The options of the stages of these runs."""
    return np.repeat([row for row, _ in blocks], [count for _, count in blocks])


def varied(
    field: Field, blocks: list[Block], degrees: IntArray, allowed: Callable[[list[int]], bool]
) -> Iterator[list[Block]]:
    """Chains that differ in one run.

    degrees: equal numbers for options that differ in mode only, (R,). allowed: whether pools may
    come in this order.
    """
    for changed in (*_resized(field, blocks, degrees), *_moved(blocks)):
        pools = [int(field.costs.pool[row]) for row, _ in changed]
        if changed and allowed(pools) and sum(n for _, n in changed) <= field.cell.deepest:
            yield changed


def _resized(field: Field, blocks: list[Block], degrees: IntArray) -> Iterator[list[Block]]:
    """One run with fewer, more or other stages, or left out."""
    costs, room = field.costs, field.cell.room
    for i, (row, count) in enumerate(blocks):
        pool = costs.pool[row]
        same = np.flatnonzero(costs.pool == pool)
        for other in same[np.unique(degrees[same], return_index=True)[1]].tolist():
            most = int(room[pool] // costs.chips[other])
            kept = degrees[other] == degrees[row]
            for n in {count - 1, count + 1} if kept else {count, most}:
                if 0 < n <= most:
                    yield [*blocks[:i], (other, n), *blocks[i + 1 :]]
        yield [*blocks[:i], *blocks[i + 1 :]]


def _moved(blocks: list[Block]) -> Iterator[list[Block]]:
    """One run elsewhere."""
    for i, block in enumerate(blocks):
        rest = [*blocks[:i], *blocks[i + 1 :]]
        for j in range(len(blocks)):
            if j != i:
                yield [*rest[:j], block, *rest[j:]]
