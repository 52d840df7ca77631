"""``norm``: RMS or layer norm over the dimensions of its scale, else over the last one."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from costmodel.model.graph import Op
from runner.named import aligned
from runner.place import Place

EPSILON = 1e-5


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """``(x - mean) / sqrt(mean square + epsilon) scale + bias``; rms leaves out the mean."""
    x, dims = inputs[0], place.dims(op.inputs[0])
    over = op.weights[0].dims if op.weights else dims[-1:]
    axes = [2 + dims.index(dim) for dim in over]
    if op.attributes.get("function", "rms") == "layer":
        x = x - x.mean(dim=axes, keepdim=True)
    y = x * (x.square().mean(dim=axes, keepdim=True) + EPSILON).rsqrt()
    for weight in op.weights:
        value = aligned(weights[weight.name], weight.dims, dims, leading=0)
        y = y * value if weight.name == "scale" else y + value
    return y
