"""What stages of one set of degrees take and hold, per unit of layers: least values for a bound.

Layers are counted in weights (``planner.families.spans.layer_weights``); of like layers each counts
one, and a stage holds whole ones.
"""

from dataclasses import dataclass

import numpy as np

from planner.arrays import FloatArray
from planner.families.cells import Cell
from planner.families.costs import (
    BACKWARD,
    FORWARD,
    GATHER,
    KEPT,
    REDUCE,
    STATIC,
    TRANSIENT,
    UPDATE,
    Costs,
    costs_of,
)
from planner.families.links import Links
from planner.families.nodes import layers_of
from planner.instance import Instance


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Field:
    """A cell with one option a pool, and least costs of its K options.

    weights: of the layers, (L,). whole: layers are alike, so that stages hold whole numbers.
    work: seconds of a micro-batch per unit, (K,), and ends, (3, K): what a stage takes besides, by
    place. first_chunk: least seconds of a chunk forward and back, (K, 2). hop: least seconds of a
    hand-over. after: linear pieces of what follows the last backward, ``a + b x``, (3, K, 4, 2).
    static, kept: bytes per unit, (K,). held: bytes besides, (3, K). room: (K,). units: stages that
    a copy may have of each option, (K,).
    """

    cell: Cell
    costs: Costs
    weights: FloatArray
    whole: bool
    work: FloatArray
    ends: FloatArray
    first_chunk: FloatArray
    hop: float
    after: FloatArray
    static: FloatArray
    kept: FloatArray
    held: FloatArray
    room: FloatArray
    units: FloatArray

    @property
    def size(self) -> float:
        """Weight of all layers."""
        return float(self.weights.sum())


def field_of(links: Links, instance: Instance, cell: Cell) -> Field:
    """The cell priced. Its rows are of different pools."""
    x = costs_of(links, instance, cell)
    kinds, weights = layers_of(instance)
    whole = bool((kinds == kinds[0]).all())
    weights = np.ones(len(kinds)) if whole else weights
    layers = np.diff(x.layers, axis=2)
    unit = (layers / weights).min(axis=2)
    ends = np.stack([np.zeros_like(x.first), x.first, x.last])
    passes = layers[FORWARD] + layers[BACKWARD]
    return Field(
        cell=cell,
        costs=x,
        weights=weights,
        whole=whole,
        work=(passes / weights).min(axis=1),
        ends=ends[:, :, FORWARD] + ends[:, :, BACKWARD] + x.overhead[1],
        first_chunk=np.stack([layers[FORWARD].min(axis=1), passes.min(axis=1)], axis=1),
        hop=float(x.hop.min()),
        after=_after(x, layers / weights, ends),
        static=unit[STATIC],
        kept=unit[KEPT],
        held=ends[:, :, STATIC] + _buffers(x, ends),
        room=x.room,
        units=(cell.room[x.pool] // x.chips).astype(np.float64),
    )


def _buffers(x: Costs, ends: FloatArray) -> FloatArray:
    least = x.layers[TRANSIENT, :, :-1].min(axis=1)
    return np.maximum(ends[:, :, TRANSIENT], least)


def _after(x: Costs, unit: FloatArray, ends: FloatArray) -> FloatArray:
    """``planner.families.score.after_s`` from below: the larger of two lines for both halves."""
    hidden, least = x.exposed
    pieces: list[FloatArray] = []
    for down in (least, 1.0):
        for up in (least, 1.0):
            slope = down * unit[REDUCE] + up * unit[GATHER] + unit[UPDATE]
            base = down * ends[:, :, REDUCE] + up * ends[:, :, GATHER] + ends[:, :, UPDATE]
            base = base + down * x.latency[:, 0] + up * x.latency[:, 1]
            for way, share in ((BACKWARD, down), (FORWARD, up)):
                if share > least:
                    slope = slope - hidden * unit[way]
                    base = base - hidden * ends[:, :, way]
            pieces.append(np.stack([base, np.broadcast_to(slope.min(axis=1), base.shape)], axis=-1))
    return np.stack(pieces, axis=2)
