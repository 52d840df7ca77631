"""``router``: probabilities of the chosen experts, zero for all others."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from costmodel.model.graph import Op
from runner.place import Place


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """Softmax over the experts; the ``top_k`` largest stay."""
    scores = place.product(lambda x, weight: x @ weight.T, inputs[0], weights["weight"])
    if "bias" in weights:
        scores = scores + weights["bias"]
    probabilities = scores.softmax(dim=-1)
    chosen = probabilities.topk(int(op.attributes["top_k"]), dim=-1).indices
    kept = torch.zeros_like(probabilities).scatter(-1, chosen, 1.0)
    return probabilities * kept
