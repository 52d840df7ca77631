"""``bias``: a vector added to every token."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from costmodel.model.graph import Op
from runner.named import aligned
from runner.place import Place


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """``y = x + bias``."""
    dims = place.dims(op.inputs[0])
    return inputs[0] + aligned(weights["bias"], op.weights[0].dims, dims, leading=0)
