"""``position``: learned absolute positions, added."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from costmodel.model.graph import Op
from runner.place import Place


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """``y = x + table[position]``."""
    return inputs[0] + weights["table"][place.positions_of(op)]
