"""Counts what is passed to ``torch.distributed``. Knows no traffic formula, only tensors.

Every communication of the runner goes through a Recorder; no other module calls a collective.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from runner.typed import dist

Label = tuple[str, tuple[int, ...]]
"""Kind and ranks of the group that a call belongs to."""


def _gather_call() -> Any:
    return getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def _scatter_call() -> Any:
    return getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass(slots=True)
class Recorder:
    """Calls torch.distributed and adds up bytes per label."""

    sent: Counter[Label] = field(default_factory=Counter[Label])
    calls: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def _count(self, call: str, label: Label, tensor: Tensor) -> None:
        self.sent[label] += tensor.numel() * tensor.element_size()
        self.calls[label[0], call] += 1

    def all_reduce(self, tensor: Tensor, handle: Any, label: Label, *, largest: bool) -> None:
        """In place; counts the tensor."""
        self._count("all_reduce", label, tensor)
        dist.all_reduce(
            tensor, op=dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM, group=handle
        )

    def all_gather(self, output: Tensor, tensor: Tensor, handle: Any, label: Label) -> None:
        """Counts the output."""
        self._count("all_gather", label, output)
        _gather_call()(output, tensor, group=handle)

    def reduce_scatter(self, output: Tensor, tensor: Tensor, handle: Any, label: Label) -> None:
        """Counts the input."""
        self._count("reduce_scatter", label, tensor)
        _scatter_call()(output, tensor, group=handle)

    def all_to_all(
        self, tensor: Tensor, sizes: tuple[list[int], list[int]], handle: Any, label: Label
    ) -> Tensor:
        """Exchanges rows; ``sizes``: rows for, and from, each member. Counts the input."""
        self._count("all_to_all", label, tensor)
        to, of = sizes
        output = torch.empty((sum(of), *tensor.shape[1:]), dtype=tensor.dtype)
        dist.all_to_all_single(output, tensor, of, to, group=handle)
        return output

    def isend(self, tensor: Tensor, peer: int, label: Label, tag: int) -> Any:
        """Starts a send; counts the message. The tensor must live until the work is waited for."""
        self._count("send", label, tensor)
        return dist.isend(tensor, peer, tag=tag)

    def receive(self, tensor: Tensor, peer: int, tag: int) -> None:
        """Waits for a message; the sender counts it."""
        dist.recv(tensor, peer, tag=tag)
