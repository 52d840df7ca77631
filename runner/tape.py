"""One block's forward and backward for one micro-batch, without autograd across blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from runner.regather import Regather
from runner.typed import backward

Result = tuple[Tensor | None, Tensor | None]
"""Output on the stream, loss per sequence."""
Body = Callable[[Tensor | None, Regather | None], Result]


@dataclass(slots=True)
class Tape:
    """What a block's backward needs: its input and its graph, or how to run it again."""

    source: Tensor | None
    body: Body
    result: Result | None
    loss_weight: float

    def backward(self, grad: Tensor | None) -> Tensor | None:
        """Adds weight gradients; returns the gradient of the input."""
        output, loss = self.result or _run(self.body, self.source)
        self.result = None
        ends = [(output * grad).sum()] if output is not None and grad is not None else []
        if loss is not None:
            ends.append(loss.sum() * self.loss_weight)
        if ends:
            backward(sum(ends[1:], ends[0]))
        return None if self.source is None else self.source.grad


def record(
    body: Body, x: Tensor | None, *, full_recompute: bool, loss_weight: float
) -> tuple[Result, Tape]:
    """Runs a block forward. Returns its detached result and its tape."""
    source = None if x is None else x.detach().requires_grad_()
    if full_recompute:
        with torch.no_grad():
            result = body(source, None)
        return result, Tape(source=source, body=body, result=None, loss_weight=loss_weight)
    output, loss = result = _run(body, source)
    kept = Tape(source=source, body=body, result=result, loss_weight=loss_weight)
    return (
        None if output is None else output.detach(),
        None if loss is None else loss.detach(),
    ), kept


def _run(body: Body, source: Tensor | None) -> Result:
    with torch.enable_grad(), Regather() as memory:
        return body(source, memory)
