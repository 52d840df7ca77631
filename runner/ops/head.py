"""``head``: logits and cross entropy against the next token, vocabulary split over tp.

Returns the sum over the rank's tokens for each sequence; the runner divides by the batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from costmodel.model.graph import Op
from runner.convert import all_reduce
from runner.named import contract
from runner.place import Place


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """``log sum exp - target logit``: maximum, sum and target are reduced over tp."""
    group, logits = place.mesh.tp, _logits(op, inputs[0], weights, place)
    first = group.index * logits.shape[-1]
    padding = torch.arange(logits.shape[-1]) + first >= place.block.dims["vocab"]
    logits = logits.masked_fill(padding, -torch.inf)
    largest = group.all_reduce(logits.detach().amax(dim=-1), largest=True)
    total = all_reduce((logits - largest.unsqueeze(-1)).exp().sum(dim=-1), group)
    column = place.targets - first
    mine = (column >= 0) & (column < logits.shape[-1])
    picked = logits.gather(-1, column.clamp(0, logits.shape[-1] - 1).unsqueeze(-1)).squeeze(-1)
    target = all_reduce(picked.where(mine, torch.zeros_like(picked)), group)
    return (total.log() + largest - target).sum(dim=1)


def whole(
    op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place
) -> Tensor:
    """Cross entropy of all logits."""
    logits = _logits(op, inputs[0], weights, place)
    losses = functional.cross_entropy(
        logits.flatten(0, 1), place.targets.flatten(), reduction="none"
    )
    return losses.reshape(place.targets.shape).sum(dim=1)


def _logits(op: Op, x: Tensor, weights: Mapping[str, Tensor], place: Place) -> Tensor:
    dims, x_dims = op.weights[0].dims, place.dims(op.inputs[0])
    logits = place.product(
        lambda value, weight: contract(value, x_dims, weight, dims, dims[:1]), x, weights["weight"]
    )
    return logits + weights["bias"] if "bias" in weights else logits
