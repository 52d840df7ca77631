"""Runs a function without keeping what it computes, and once more in the backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from runner.typed import apply, backward


class _Again(Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        ctx.function = function
        ctx.save_for_backward(*inputs)
        return function(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            output = ctx.function(*inputs)
            total = (output * grads[0]).sum()
        backward(total)
        return None, *(x.grad for x in inputs)


def again(function: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> Tensor:
    """``function(*inputs)``, recomputed in the backward. Every input must be an argument."""
    return apply(_Again, function, *inputs)
