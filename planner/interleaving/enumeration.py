"""Every interleaved chain of a small group."""

from collections.abc import Iterator
from itertools import combinations, groupby, product
from math import comb

import numpy as np

from planner.instance import Draft, Entry, Instance, Template
from planner.interleaving.bound import Chain

MOST_LAYOUTS = 300


def every_chain(instance: Instance, chain: Chain) -> list[Draft] | None:
    """All layouts of the group; None where they are more than ``MOST_LAYOUTS``."""
    layers, p = instance.num_layers, chain.depth
    cuts = sum(comb(layers - 1, v * p - 1) for v in chain.chunks)
    kinds = len(chain.field.work)
    if kinds**p * cuts > MOST_LAYOUTS:
        return None
    return [
        (
            Entry(
                template=Template(rows=rows, cuts=(0, *inner, layers)),
                count=chain.field.cell.copies,
                microbatches=chain.field.cell.microbatches,
            ),
        )
        for rows in _sequences(chain)
        for v in chain.chunks
        for inner in combinations(range(1, layers), v * p - 1)
    ]


def _sequences(chain: Chain) -> Iterator[tuple[int, ...]]:
    """Options of the stages, each pool in one run."""
    units = chain.field.units
    for kinds in product(range(len(units)), repeat=chain.depth):
        runs = [kind for kind, _ in groupby(kinds)]
        if len(runs) == len(set(runs)) and all(
            kinds.count(k) <= units[k] for k in range(len(units))
        ):
            yield tuple(chain.field.cell.rows[np.array(kinds)].tolist())
