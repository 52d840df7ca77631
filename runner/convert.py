"""Changes of placement as autograd functions: one for each row of the conversion table.

``costmodel.model.placement.collectives`` says which collectives a change needs forward and
backward; ``convert`` finds the function that does exactly these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd import Function

from costmodel.model.placement import Collective
from runner.groups import Group
from runner.regather import Gathered, Regather
from runner.typed import apply

Steps = tuple[tuple[Collective, ...], tuple[Collective, ...]]
_AR, _AG, _RS = Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER


class _Sum(Function):
    """All-reduce; the gradient is already whole on every rank."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:  # noqa: ARG004
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:  # noqa: ARG004
        return grads[0], None


class _Copy(Function):
    """Nothing forward; the gradients that arrive are partial sums."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.group.all_reduce(grads[0]), None


class _SumBoth(Function):
    """All-reduce of the value, then of its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.all_reduce(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.group.all_reduce(grads[0]), None


class _Scatter(Function):
    """Reduce-scatter; the gradient is gathered."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, axis: int) -> Tensor:
        ctx.group, ctx.axis = group, axis
        return group.reduce_scatter(x, axis)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.group.all_gather(grads[0], ctx.axis), None, None


class _Gather(Function):
    """All-gather; the whole is not kept but gathered again, then its gradient reduce-scattered."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, axis: int, memory: Regather | None) -> Tensor:
        whole = group.all_gather(x, axis)
        ctx.group, ctx.axis, ctx.kept = group, axis, None
        if memory is not None:
            ctx.kept = Gathered(x.detach(), group, axis)
            memory.add(whole, ctx.kept)
        return whole

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        if ctx.kept is not None:
            ctx.kept.again()
            ctx.kept.drop()
        return ctx.group.reduce_scatter(grads[0], ctx.axis), None, None, None


def all_reduce(x: Tensor, group: Group) -> Tensor:
    """Sum over the members of partial sums whose total every member then uses alike."""
    return x if group.size == 1 else apply(_Sum, x, group)


def gather(x: Tensor, group: Group, axis: int, memory: Regather | None) -> Tensor:
    """All members' parts; without ``memory`` the gathered tensor is kept for the backward."""
    return x if group.size == 1 else apply(_Gather, x, group, axis, memory)


_CONVERSIONS: dict[Steps, Callable[[Tensor, Group, int, Regather | None], Any]] = {
    ((_AR,), ()): lambda x, group, _axis, _memory: apply(_Sum, x, group),
    ((), (_AR,)): lambda x, group, _axis, _memory: apply(_Copy, x, group),
    ((_AR,), (_AR,)): lambda x, group, _axis, _memory: apply(_SumBoth, x, group),
    ((_RS,), (_AG,)): lambda x, group, axis, _memory: apply(_Scatter, x, group, axis),
    ((_AG,), (_AG, _RS)): lambda x, group, axis, memory: apply(_Gather, x, group, axis, memory),
}


def convert(x: Tensor, steps: Steps, group: Group, axis: int, memory: Regather | None) -> Tensor:
    """Executes one change of placement. Raises KeyError for steps that no function does."""
    return _CONVERSIONS[steps](x, group, axis, memory)
