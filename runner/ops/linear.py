"""``linear``: a product with a weight, contracted by names."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from costmodel.model.graph import Op
from runner.named import contract
from runner.place import Place


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """``y[out] = sum_in weight[out, in] x[in]`` over what the shards have."""
    x_dims, out = place.dims(op.inputs[0]), place.dims(op.outputs[0])
    dims = op.weights[0].dims
    return place.product(
        lambda x, weight: contract(x, x_dims, weight, dims, out), inputs[0], weights["weight"]
    )
