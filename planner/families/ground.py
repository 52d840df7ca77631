"""What a relaxed chain obeys: chips, and one node of the proof."""

from typing import NamedTuple

from planner.arrays import FloatArray, IntArray


class Ground(NamedTuple):
    """What chips allow for: a NamedTuple because compiled functions take it.

    pool, units: pool (of those of the cell) and most stages of each slot, (S,). hop: least seconds
    of a hand-over there and back from a slot to the next, (S, S). kin: pools, as bits, that have
    to be neighbours in the chain with each pool, (K,). behind: pools, as bits, without which
    behind it a pool is not used, (K,).
    """

    pool: IntArray
    units: IntArray
    hop: FloatArray
    kin: IntArray
    behind: IntArray


class Limits(NamedTuple):
    """One node: the period lies in [low, high]; a layer's weight is worth ``price``.

    goal: chains of this value or more do not matter. least, deepest: fewest and most stages.
    windows: windows of stages have the period as a limit, not only single stages. pace_from,
    pace_to: positions of the stage that sets the period, from the end. A stage counts its
    time once; from the one on that sets the period ``weight`` times, less ``credit``; ``each`` is
    taken off every stage.
    """

    low: float
    high: float
    price: float
    goal: float
    microbatches: int
    least: int
    deepest: int
    windows: bool
    pace_from: int
    pace_to: int
    weight: float
    credit: float
    each: float
