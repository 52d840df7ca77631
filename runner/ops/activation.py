"""``activation``: f(g), or f(g) u."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from costmodel.model.graph import Op
from runner.functions import FUNCTIONS
from runner.named import aligned
from runner.place import Place


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """The function of the first input, times the second if there is one."""
    del weights
    out = place.dims(op.outputs[0])
    pairs = zip(inputs, op.inputs, strict=True)
    parts = [aligned(x, place.dims(name), out) for x, name in pairs]
    y = FUNCTIONS[str(op.attributes["function"])](parts[0])
    return y * parts[1] if len(parts) > 1 else y
