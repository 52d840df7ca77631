"""``embedding``: token ids to vectors, vocabulary split over tp."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from torch.nn import functional

from costmodel.model.graph import Op
from runner.place import Place


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """Rows that another rank holds give zero: the output is a partial sum."""
    del op, inputs
    table = weights["table"]
    row = place.ids - place.mesh.tp.index * table.shape[0]
    mine = (row >= 0) & (row < table.shape[0])
    found = functional.embedding(row.clamp(0, table.shape[0] - 1), table)
    return found * mine.unsqueeze(-1)


def whole(
    op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place
) -> Tensor:
    """A lookup."""
    del op, inputs
    return weights["table"][place.ids]
