"""``elementwise``: sums, products and joins of two tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from costmodel.model.graph import Op
from runner.named import aligned
from runner.place import Place


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """``a + b``, ``a b`` or the join of their last dimensions; b is broadcast."""
    del weights
    (a, b), (a_dims, b_dims) = inputs, (place.dims(name) for name in op.inputs)
    function = op.attributes["function"]
    if function == "concat":
        b = aligned(b, b_dims, (*a_dims[:-1], b_dims[-1]))
        return torch.cat((a, b.expand(*a.shape[:-1], b.shape[-1])), dim=-1)
    out = place.dims(op.outputs[0])
    a, b = aligned(a, a_dims, out), aligned(b, b_dims, out)
    return a + b if function == "add" else a * b
