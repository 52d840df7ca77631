"""Gradient sums and the weight update, one flat buffer per gradient group.

Without ZeRO the buffer is all-reduced and every rank updates it whole. With ZeRO-1 it is
reduce-scattered, each rank updates its part with its part of the optimizer state, and the new
weights are gathered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from costmodel.layout.shards import Box, GradientGroup, Holding
from runner.groups import Group, GroupMaker
from runner.optimizer import step
from runner.weights import within


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What one rank has after the step for one gradient group, as parts of its flat buffer.

    group: index of the gradient group. offset: where ``gradient`` starts; ``weights`` is whole.
    """

    group: int
    offset: int
    gradient: Tensor
    weights: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A rank's shards: leaf tensors, their boxes and the factor on each gradient."""

    weights: Mapping[str, Tensor]
    boxes: Mapping[str, Box]
    shares: Mapping[str, float]


def shares_of(holdings: Sequence[Holding], rank: int) -> dict[str, float]:
    """Factor on each of a rank's gradients before the sum."""
    return {h.parameter: h.share for h in holdings if h.rank == rank}


def synchronise(
    held: Held, groups: Sequence[GradientGroup], makers: GroupMaker
) -> list[Synced]:
    """Sums and updates every group that the rank is in; all ranks go in the same order."""
    results: list[Synced] = []
    for index, wanted in enumerate(groups):
        if makers.rank not in wanted.ranks:
            continue
        group = makers.group(wanted.kind, wanted.ranks)
        gradient, weights = _flat(held, wanted)
        offset = 0
        if wanted.zero == 0:
            gradient = group.all_reduce(gradient)
            weights = step(weights, gradient)
        else:
            offset, gradient, weights = _sharded(gradient, weights, group, wanted)
        results.append(Synced(group=index, offset=offset, gradient=gradient, weights=weights))
    return results


def _sharded(
    gradient: Tensor, weights: Tensor, group: Group, wanted: GradientGroup
) -> tuple[int, Tensor, Tensor]:
    """ZeRO-1: (offset of this rank's part, its gradient, all new weights)."""
    size = wanted.shard_elements
    padding = size * group.size - wanted.elements
    part = group.reduce_scatter(_padded(gradient, padding), 0)
    offset = size * group.index
    mine = _padded(weights, padding)[offset : offset + size]
    updated = group.all_gather(step(mine, part), 0)[: wanted.elements]
    return offset, part[: max(0, wanted.elements - offset)], updated


def _padded(flat: Tensor, padding: int) -> Tensor:
    return torch.cat((flat, flat.new_zeros(padding)))


def _flat(held: Held, wanted: GradientGroup) -> tuple[Tensor, Tensor]:
    """Gradients (times their shares) and weights of the group's atoms, end to end."""
    gradients: list[Tensor] = []
    weights: list[Tensor] = []
    for atom in wanted.atoms:
        leaf = held.weights[atom.parameter].detach()
        grad = held.weights[atom.parameter].grad
        where = within(held.boxes[atom.parameter], atom.box)
        weights.append(leaf[where].flatten())
        part = torch.zeros_like(weights[-1]) if grad is None else grad[where].flatten()
        gradients.append(part * held.shares[atom.parameter])
    return torch.cat(gradients), torch.cat(weights)
