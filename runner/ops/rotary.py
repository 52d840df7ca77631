"""``rotary``: position rotation of the last dimension, or of its first or last elements."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from costmodel.model.graph import Op
from runner.place import Place

BASE = 10000.0


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """Pairs (i, i + half) turn by ``position x base^(-i / half)`` (Su et al., arXiv 2104.09864)."""
    del weights
    x = inputs[0]
    size = int(op.attributes.get("size", 0)) or x.shape[-1]
    start = x.shape[-1] - size if op.attributes.get("at_end", False) else 0
    half = size // 2
    powers = torch.arange(half, dtype=x.dtype) / half
    angle = place.positions_of(op).to(x.dtype).unsqueeze(-1) * BASE**-powers
    angle = angle.reshape(1, angle.shape[0], *[1] * (x.dim() - 3), half)
    a, b = x[..., start : start + half], x[..., start + half : start + 2 * half]
    turned = (a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin())
    return torch.cat((x[..., :start], *turned, x[..., start + 2 * half :]), dim=-1)
