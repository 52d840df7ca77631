"""Gradient sums and the weight update, one flat buffer per gradient group.

ZeRO 0: the buffer is all-reduced after the last micro-batch and every rank updates it whole.
ZeRO 1: it is reduce-scattered, each rank updates its part with its part of the optimizer state,
and the new weights are gathered. ZeRO 2: it is reduce-scattered after every micro-batch into the
part that a rank keeps; ranks of a pipeline with fewer micro-batches send zeros in the rounds that
they lack. ZeRO 3: between uses a rank keeps only its part of the weights, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from costmodel.layout.shards import Atom, Box, GradientGroup, Holding
from runner.groups import Group, GroupMaker
from runner.optimizer import step
from runner.typed import split
from runner.weights import within


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What one rank has after the step for one gradient group, as parts of its flat buffer.

    group: index of the gradient group. gradient, weights: (where it starts, values).
    """

    group: int
    gradient: tuple[int, Tensor]
    weights: tuple[int, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A rank's shards: leaf tensors, their boxes and the factor on each gradient."""

    weights: Mapping[str, Tensor]
    boxes: Mapping[str, Box]
    shares: Mapping[str, float]


def shares_of(holdings: Sequence[Holding], rank: int) -> dict[str, float]:
    """Factor on each of a rank's gradients before the sum."""
    return {h.parameter: h.share for h in holdings if h.rank == rank}


class FlatGroup:
    """One gradient group on one of its ranks."""

    def __init__(self, index: int, wanted: GradientGroup, held: Held, group: Group) -> None:
        self.index, self.wanted, self.held, self.group = index, wanted, held, group
        self.size = wanted.shard_elements
        self.offset = self.size * group.index
        self.sum = torch.zeros(0)
        self.part = self._own(self._padded(self._weights()))
        if wanted.zero >= 3:
            self.release()

    def gather(self) -> None:
        """ZeRO 3: whole weights, for one forward or backward."""
        whole = self.group.all_gather(self.part, 0)[: self.wanted.elements]
        self._fill(split(whole, [atom.elements for atom in self.wanted.atoms]))

    def release(self) -> None:
        """ZeRO 3: nothing is left of the whole weights."""
        nothing = [
            torch.full((a.elements,), torch.nan, dtype=self.part.dtype) for a in self.wanted.atoms
        ]
        self._fill(nothing)

    def _fill(self, parts: Sequence[Tensor]) -> None:
        for atom, part in zip(self.wanted.atoms, parts, strict=True):
            view = self.held.weights[atom.parameter].data[self._where(atom)]
            view.copy_(part.reshape(view.shape))

    def accumulate(self) -> None:
        """ZeRO 2 and 3: adds one micro-batch's gradients to this rank's part of the sum."""
        part = self.group.reduce_scatter(self._padded(self._take_gradients()), 0)
        self.sum = part if self.sum.numel() == 0 else self.sum + part

    def finish(self) -> Synced:
        """The last sums, the optimizer step and the new weights."""
        if self.wanted.zero == 0:
            gradient = self.group.all_reduce(self._take_gradients())
            new = step(self._weights(), gradient)
            return Synced(group=self.index, gradient=(0, gradient), weights=(0, new))
        if self.wanted.zero == 1:
            self.accumulate()
        new, offset = step(self.part, self.sum), self.offset
        if self.wanted.zero < 3:
            new, offset = self.group.all_gather(new, 0), 0
        return Synced(
            group=self.index,
            gradient=(self.offset, self._cut(self.sum, self.offset)),
            weights=(offset, self._cut(new, offset)),
        )

    def _where(self, atom: Atom) -> tuple[slice, ...]:
        return within(self.held.boxes[atom.parameter], atom.box)

    def _weights(self) -> Tensor:
        leaves = ((self.held.weights[a.parameter].detach(), a) for a in self.wanted.atoms)
        return torch.cat([leaf[self._where(atom)].flatten() for leaf, atom in leaves])

    def _take_gradients(self) -> Tensor:
        """Gradients times their shares, end to end; they count as used up."""
        parts: list[Tensor] = []
        for atom in self.wanted.atoms:
            leaf = self.held.weights[atom.parameter]
            grad = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
            part = grad[self._where(atom)]
            parts.append(part.flatten() * self.held.shares[atom.parameter])
            part.zero_()
        return torch.cat(parts)

    def _padded(self, flat: Tensor) -> Tensor:
        return torch.cat((flat, flat.new_zeros(self.size * self.group.size - flat.numel())))

    def _own(self, padded: Tensor) -> Tensor:
        return padded[self.offset : self.offset + self.size].clone()

    def _cut(self, part: Tensor, offset: int) -> Tensor:
        """Without what is padding."""
        return part[: max(0, self.wanted.elements - offset)]


class GradientSums:
    """All gradient groups of a rank; every rank goes through them in the same order."""

    def __init__(self, held: Held, groups: Sequence[GradientGroup], makers: GroupMaker) -> None:
        self.flat = [
            FlatGroup(index, wanted, held, makers.group(wanted.kind, wanted.ranks))
            for index, wanted in enumerate(groups)
            if makers.rank in wanted.ranks
        ]
        self.rounds = 0

    def before(self) -> None:
        """Before a forward or a backward."""
        for flat in self._at_least(3):
            flat.gather()

    def after(self) -> None:
        """After a forward or a backward."""
        for flat in self._at_least(3):
            flat.release()

    def summed(self) -> None:
        """When a micro-batch's gradients are all there: one round."""
        for flat in self._at_least(2):
            if flat.wanted.rounds > self.rounds:
                flat.accumulate()
        self.rounds += 1

    def _at_least(self, zero: int) -> list[FlatGroup]:
        return [flat for flat in self.flat if flat.wanted.zero >= zero]

    def finish(self) -> tuple[Synced, ...]:
        """Rounds that longer pipelines still have, then the update of every group."""
        while any(flat.wanted.rounds > self.rounds for flat in self._at_least(2)):
            self.summed()
        return tuple(flat.finish() for flat in self.flat)
