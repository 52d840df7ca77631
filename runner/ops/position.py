"""``position``: learned absolute positions, added."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from costmodel.model.graph import Op
from runner.place import Place


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """``y = x + table[position]``; a table with fewer rows (token types) repeats."""
    table = weights["table"]
    return inputs[0] + table[place.positions_of(op) % table.shape[0]]
