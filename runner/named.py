"""Axes by name: tensors are (sequences, tokens, features...), features named by dimensions."""

from __future__ import annotations

import torch
from torch import Tensor

Dims = tuple[str, ...]


def contract(x: Tensor, x_dims: Dims, weight: Tensor, weight_dims: Dims, out: Dims) -> Tensor:
    """``y[out] = sum weight[...] x[...]`` over the dimensions that ``out`` lacks."""
    names = sorted({*x_dims, *weight_dims, *out})
    letter = {name: chr(ord("a") + index) for index, name in enumerate(names)}
    x_axes, w_axes, y_axes = (
        "".join(letter[d] for d in dims) for dims in (x_dims, weight_dims, out)
    )
    return torch.einsum(f"YZ{x_axes},{w_axes}->YZ{y_axes}", x, weight)


def aligned(x: Tensor, dims: Dims, target: Dims, *, leading: int = 2) -> Tensor:
    """x with its features in the order of ``target`` and an axis of one for each it lacks."""
    order = [leading + dims.index(d) for d in target if d in dims]
    x = x.permute(*range(leading), *order)
    for axis, dim in enumerate(target):
        if dim not in dims:
            x = x.unsqueeze(leading + axis)
    return x
