"""Products whose weight gradients are left for later, as zero-bubble schedules have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from runner.typed import apply, gradient

Product = Callable[[Tensor, Tensor], Tensor]
"""Of an input and a weight; linear in either."""

Later = list[Callable[[], None]]
"""Weight gradients still to be computed and added."""


class _Apart(Function):
    @staticmethod
    def forward(ctx: Any, product: Product, later: Later, x: Tensor, weight: Tensor) -> Tensor:
        ctx.product, ctx.later, ctx.weight = product, later, weight
        ctx.save_for_backward(x)
        return product(x, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        product, weight, grad, values = ctx.product, ctx.weight, grads[0], x.detach()

        def add() -> None:
            made = _gradient(lambda w: product(values, w), weight, grad)
            weight.grad = made if weight.grad is None else weight.grad + made

        ctx.later.append(add)
        wanted = ctx.needs_input_grad[2]
        return (
            None,
            None,
            _gradient(lambda v: product(v, weight), x, grad) if wanted else None,
            None,
        )


def _gradient(function: Callable[[Tensor], Tensor], at: Tensor, grad: Tensor) -> Tensor:
    """What ``grad`` on the function's result is on its argument."""
    leaf = at.detach().requires_grad_()
    with torch.enable_grad():
        return gradient(function(leaf), leaf, grad)


def product(function: Product, x: Tensor, weight: Tensor, later: Later | None) -> Tensor:
    """``function(x, weight)``; with ``later`` its backward leaves the weight's gradient there."""
    if later is None or not weight.requires_grad:
        return function(x, weight)
    return apply(_Apart, function, later, x, weight)
