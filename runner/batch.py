"""The step's training data, and which part of it each micro-batch is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from costmodel.layout.values import Layout, StageOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Token ids of the global batch, shape (sequences, sequence_length + 1 + depth)."""

    tokens: Tensor
    sequence_length: int

    def window(
        self, rows: tuple[int, int], columns: tuple[int, int], shift: int
    ) -> tuple[Tensor, Tensor]:
        """Ids and next-token targets of some sequences and positions, ``shift`` tokens later."""
        part = self.tokens[rows[0] : rows[1]]
        start, stop = columns[0] + shift, columns[1] + shift
        return part[:, start:stop], part[:, start + 1 : stop + 1]


def make_batch(seed: int, sequences: int, sequence_length: int, vocab: int, depth: int) -> Batch:
    """Uniformly random tokens; ``depth``: multi-token-prediction blocks, which look further."""
    generator = torch.Generator().manual_seed(seed)
    shape = (sequences, sequence_length + 1 + depth)
    tokens = torch.randint(vocab, shape, generator=generator)
    return Batch(tokens=tokens, sequence_length=sequence_length)


def first_sequence(layout: Layout, pipeline: int, copy: int) -> int:
    """Index of a pipeline copy's first sequence: copies take their shares one after the other."""
    before = sum(p.count * p.microbatches * p.samples for p in layout.pipelines[:pipeline])
    own = layout.pipelines[pipeline]
    return before + copy * own.microbatches * own.samples


def token_range(
    option: StageOption, cp: int, tp: int | None, sequence_length: int
) -> tuple[int, int]:
    """Positions of a cp chunk, or of a tp part of it (``tp`` given, sequence parallelism)."""
    chunk = sequence_length // option.cp
    if tp is None:
        return cp * chunk, (cp + 1) * chunk
    part = chunk // option.tp
    return cp * chunk + tp * part, cp * chunk + (tp + 1) * part
