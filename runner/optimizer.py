"""The optimizer step that follows the gradients: Adam's first step."""

from __future__ import annotations

import torch
from torch import Tensor

RATE = 1e-2
BETAS = (0.9, 0.95)
EPSILON = 1e-6
"""Larger than usual, so that rounding in a gradient near zero does not look like a difference."""


def step(weights: Tensor, gradient: Tensor) -> Tensor:
    """``w - rate m / (sqrt(v) + epsilon)`` with bias-corrected moments (arXiv 1412.6980)."""
    first = (1 - BETAS[0]) * gradient / (1 - BETAS[0])
    second = (1 - BETAS[1]) * gradient.square() / (1 - BETAS[1])
    return weights - RATE * first / (torch.sqrt(second) + EPSILON)
