"""Activations and gradients between neighbouring stages with different tp, cp and replicas.

Each rank holds a box of the stream: a range of sequences times a range of tokens. A rank gets its
own box from the ranks of the other side, each sending the intersection with what it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from costmodel.layout.ranks import Rank
from costmodel.layout.values import StageOption
from runner.batch import token_range
from runner.recorder import Label, Recorder
from runner.weights import DTYPE

Range = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One stage instance: its option and its ranks."""

    option: StageOption
    ranks: tuple[Rank, ...]

    def box(self, rank: Rank, sequence_length: int) -> tuple[Range, Range]:
        """Sequences (inside the micro-batch) and tokens of the stream that a rank holds."""
        size = self.option.micro_batch_size
        part = rank.tp if self.option.sequence_parallel else None
        tokens = token_range(self.option, rank.cp, part, sequence_length)
        return (rank.replica * size, (rank.replica + 1) * size), tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One message: who sends which sequences and tokens to whom."""

    source: int
    target: int
    samples: Range
    tokens: Range


def routes(source: Side, target: Side, sequence_length: int) -> list[Route]:
    """Messages that give every target rank its box.

    Without sequence parallelism the tp ranks of the source hold the same; they share the work.
    """
    found: list[Route] = []
    for receiver in target.ranks:
        box = target.box(receiver, sequence_length)
        for sender in _senders(source, target, receiver):
            pairs = zip(box, source.box(sender, sequence_length), strict=True)
            samples, tokens = ((max(a, c), min(b, d)) for (a, b), (c, d) in pairs)
            if samples[0] < samples[1] and tokens[0] < tokens[1]:
                found.append(
                    Route(source=sender.rank, target=receiver.rank, samples=samples, tokens=tokens)
                )
    return found


def _senders(source: Side, target: Side, receiver: Rank) -> Sequence[Rank]:
    if source.option.sequence_parallel:
        return source.ranks
    chosen = receiver.tp * source.option.tp // target.option.tp
    return [rank for rank in source.ranks if rank.tp == chosen]


@dataclass(slots=True)
class Boundary:
    """Messages of one rank across one boundary, in both directions.

    features: sizes of the stream's feature dimensions.
    """

    me: Rank
    here: Side
    there: Side
    label: Label
    sequence_length: int
    features: tuple[int, ...]
    recorder: Recorder
    pending: list[tuple[Any, Tensor]] = field(default_factory=list[tuple[Any, Tensor]])

    def send(self, tensor: Tensor, tag: int) -> None:
        """Starts sending this rank's parts to the other side."""
        first = self.here.box(self.me, self.sequence_length)
        for route in routes(self.here, self.there, self.sequence_length):
            if route.source == self.me.rank:
                part = tensor[_slices(route, first)].contiguous()
                work = self.recorder.isend(part, route.target, self.label, tag)
                self.pending.append((work, part))

    def receive(self, tag: int) -> Tensor:
        """Waits for this rank's box."""
        samples, tokens = first = self.here.box(self.me, self.sequence_length)
        shape = (samples[1] - samples[0], tokens[1] - tokens[0], *self.features)
        whole = torch.full(shape, torch.nan, dtype=DTYPE)
        for route in routes(self.there, self.here, self.sequence_length):
            if route.target == self.me.rank:
                where = _slices(route, first)
                part = torch.empty_like(whole[where], memory_format=torch.contiguous_format)
                self.recorder.receive(part, route.source, tag)
                whole[where] = part
        return whole

    def finish(self) -> None:
        """Waits for all sends."""
        for work, _ in self.pending:
            work.wait()
        self.pending.clear()


def _slices(route: Route, box: tuple[Range, Range]) -> tuple[slice, slice]:
    (sample, _), (token, _) = box
    return (
        slice(route.samples[0] - sample, route.samples[1] - sample),
        slice(route.tokens[0] - token, route.tokens[1] - token),
    )
