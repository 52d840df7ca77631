"""Routed tokens on their way to the ranks that hold their experts, and back.

ep: each rank sends rows to the rank with their expert (all-to-all with unequal parts).
etp: the ranks that hold parts of the same experts first gather each other's rows, and afterwards
sum and scatter the results. Gloo has no gather of unequal parts; an all-to-all that sends the
same rows to every member moves the same bytes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from runner.groups import Group
from runner.typed import apply


class _Exchange(Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, group: Group, to: list[int], of: list[int]) -> Tensor:
        ctx.group, ctx.to, ctx.of = group, to, of
        return group.exchange(rows, to, of)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.group.exchange(grads[0], ctx.of, ctx.to), None, None, None


def _gather_rows(rows: Tensor, group: Group, sizes: list[int]) -> Tensor:
    copies = rows.repeat(group.size, *[1] * (rows.dim() - 1))
    return group.exchange(copies, [rows.shape[0]] * group.size, sizes)


def _scatter_rows(rows: Tensor, group: Group, sizes: list[int]) -> Tensor:
    mine = sizes[group.index]
    parts = group.exchange(rows, sizes, [mine] * group.size)
    return parts.reshape(group.size, mine, *rows.shape[1:]).sum(dim=0)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, group: Group, sizes: list[int]) -> Tensor:
        ctx.group, ctx.sizes = group, sizes
        return _gather_rows(rows, group, sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _scatter_rows(grads[0], ctx.group, ctx.sizes), None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, group: Group, sizes: list[int]) -> Tensor:
        ctx.group, ctx.sizes = group, sizes
        return _scatter_rows(rows, group, sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _gather_rows(grads[0], ctx.group, ctx.sizes), None, None


class Dispatch:
    """One layer's routing of one micro-batch.

    by_expert: order that sorts the arrived rows by local expert. per_expert: rows of each.
    """

    def __init__(self, expert: Tensor, experts: int, ep: Group, etp: Group) -> None:
        """expert: sorted expert index of each row; experts: of the whole layer."""
        self.ep, self.etp = ep, etp
        counts = torch.bincount(expert, minlength=experts).reshape(ep.size, -1)
        arrived = ep.exchange_sizes(counts)
        self.to, self.of = _sums(counts), _sums(arrived)
        copies = arrived.flatten().repeat(etp.size, 1)
        inside = etp.exchange_sizes(copies)
        self.sizes = _sums(inside)
        local = counts.shape[1]
        owner = torch.arange(local).repeat(etp.size * ep.size)
        self.by_expert = owner.repeat_interleave(inside.flatten()).argsort(stable=True)
        self.per_expert = _ints(inside.reshape(-1, local).sum(dim=0))

    def send(self, rows: Tensor) -> Tensor:
        """Rows of this rank to where their experts are."""
        if self.ep.size > 1:
            rows = apply(_Exchange, rows, self.ep, self.to, self.of)
        if self.etp.size > 1:
            rows = apply(_Gather, rows, self.etp, self.sizes)
        return rows

    def back(self, rows: Tensor) -> Tensor:
        """Results to the ranks that sent the rows, in the order of ``send``."""
        if self.etp.size > 1:
            rows = apply(_Scatter, rows, self.etp, self.sizes)
        if self.ep.size > 1:
            rows = apply(_Exchange, rows, self.ep, self.of, self.to)
        return rows


def _ints(counts: Tensor) -> list[int]:
    return [int(n) for n in counts]


def _sums(counts: Tensor) -> list[int]:
    return _ints(counts.sum(dim=1))
