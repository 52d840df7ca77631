"""What a relaxed chain obeys: chips, and one node of the proof."""

from typing import NamedTuple

from planner.arrays import FloatArray, IntArray


class Ground(NamedTuple):
    """What chips allow for: a NamedTuple because compiled functions take it.

    pool, units: pool (of those of the cell) and most stages of each slot, (S,). hop: least seconds
    of a hand-over there and back between pools, (K, K). kin: pools, as bits, that have to be
    neighbours in the chain with each pool, (K,).
    """

    pool: IntArray
    units: IntArray
    hop: FloatArray
    kin: IntArray


class Limits(NamedTuple):
    """One node: the period lies in [low, high]; a layer's weight is worth ``price``.

    goal: chains of this value or more do not matter. least, deepest: fewest and most stages.
    steady: windows of stages have the period as a limit, not only single stages. A stage counts its
    time once; from the one on that sets the period ``weight`` times, less ``credit``. rest: what a
    window of several stages loses at most where it does not divide the micro-batches.
    """

    low: float
    high: float
    price: float
    goal: float
    microbatches: int
    least: int
    deepest: int
    steady: bool
    weight: float
    credit: float
    rest: float
