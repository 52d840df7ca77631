"""Process groups of one rank, and collectives over them on tensors with named axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from costmodel.layout.ranks import GROUP_COORDINATES, Rank, members, stage_ranks
from costmodel.layout.shards import GradientGroup
from runner.recorder import Label, Recorder
from runner.typed import dist


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One process group as one of its members sees it; every call does nothing when alone.

    index: this rank's position. label: what its traffic is recorded under.
    """

    label: Label
    index: int
    size: int
    handle: Any
    recorder: Recorder

    def all_reduce(self, tensor: Tensor, *, largest: bool = False) -> Tensor:
        """The sum (or maximum) over the members, as a new tensor."""
        if self.size == 1:
            return tensor
        result = tensor.detach().clone(memory_format=torch.contiguous_format)
        self.recorder.all_reduce(result, self.handle, self.label, largest=largest)
        return result

    def all_gather(self, tensor: Tensor, axis: int) -> Tensor:
        """The members' parts joined along an axis."""
        if self.size == 1:
            return tensor
        part = tensor.detach().contiguous()
        parts = torch.empty((self.size * part.shape[0], *part.shape[1:]), dtype=part.dtype)
        self.recorder.all_gather(parts, part, self.handle, self.label)
        return torch.cat(parts.chunk(self.size), dim=axis)

    def reduce_scatter(self, tensor: Tensor, axis: int) -> Tensor:
        """This member's part along an axis of the sum over the members."""
        if self.size == 1:
            return tensor
        whole = torch.cat(tensor.detach().chunk(self.size, dim=axis)).contiguous()
        part = torch.empty((whole.shape[0] // self.size, *whole.shape[1:]), dtype=whole.dtype)
        self.recorder.reduce_scatter(part, whole, self.handle, self.label)
        return part

    def exchange(self, rows: Tensor, to: list[int], of: list[int]) -> Tensor:
        """Sends ``to[i]`` rows to member i and receives ``of[i]`` rows from it."""
        if self.size == 1:
            return rows
        return self.recorder.all_to_all(
            rows.detach().contiguous(), (to, of), self.handle, self.label
        )

    def exchange_sizes(self, counts: Tensor) -> Tensor:
        """All-to-all of one row of integers per member; recorded as metadata."""
        if self.size == 1:
            return counts
        ones = [1] * self.size
        label = ("metadata", self.label[1])
        return self.recorder.all_to_all(counts.contiguous(), (ones, ones), self.handle, label)


def alone(kind: str, recorder: Recorder, rank: int = 0) -> Group:
    """The group of a single rank."""
    return Group(label=(kind, (rank,)), index=0, size=1, handle=None, recorder=recorder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """The groups of one rank inside its stage."""

    tp: Group
    cp: Group
    ep: Group
    etp: Group
    sequence_parallel: bool


def needed_groups(
    table: Sequence[Rank], gradients: Iterable[GradientGroup]
) -> tuple[tuple[int, ...], ...]:
    """Ranks of every process group of a run with more than one member, in a fixed order."""
    found = {group.ranks for group in gradients}
    for ranks in stage_ranks(table).values():
        for kind in GROUP_COORDINATES:
            found |= {tuple(r.rank for r in group) for group in members(ranks, kind)}
    return tuple(sorted(ranks for ranks in found if len(ranks) > 1))


class GroupMaker:
    """This rank's process groups. All ranks make all groups in the same order."""

    def __init__(self, rank: int, recorder: Recorder, needed: Iterable[tuple[int, ...]]) -> None:
        self.rank = rank
        self.recorder = recorder
        self._handles = {ranks: dist.new_group(list(ranks)) for ranks in needed}

    def group(
        self, kind: str, ranks: tuple[int, ...], *, scope: tuple[int, ...] | None = None
    ) -> Group:
        """The group of these ranks, this one among them; ``scope``: ranks that name it."""
        if len(ranks) == 1:
            return alone(kind, self.recorder, self.rank)
        return Group(
            label=(kind, scope or ranks),
            index=ranks.index(self.rank),
            size=len(ranks),
            handle=self._handles[ranks],
            recorder=self.recorder,
        )

    def mesh(self, me: Rank, stage: tuple[Rank, ...], *, sequence_parallel: bool) -> Mesh:
        """The groups of a rank among the ranks of its stage instance."""
        scope = tuple(r.rank for r in stage if r.expert_data == me.expert_data)

        def own(kind: str, named: tuple[int, ...] | None = None) -> Group:
            group = next(g for g in members(stage, kind) if me in g)
            return self.group(kind, tuple(r.rank for r in group), scope=named)

        return Mesh(
            tp=own("tp"),
            cp=own("cp"),
            ep=own("ep", scope),
            etp=own("etp", scope),
            sequence_parallel=sequence_parallel,
        )
