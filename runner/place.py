"""What an op implementation may know about where it runs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from costmodel.model.graph import Block, Op
from runner.apart import Later, Product, product
from runner.groups import Mesh
from runner.regather import Regather


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One micro-batch of one block on one rank.

    Tensors have the axes (sequences, tokens, features...). Inside a tp region a rank has all
    tokens of its cp chunk; on the residual stream with sequence parallelism only its tp part.

    positions, stream_positions: absolute token positions of these two, shape (tokens,).
    ids, targets: token ids of the cp chunk and what follows them, shape (sequences, tokens).
    memory: where gathers are registered that the backward repeats; None keeps their outputs.
    selective: activation functions inside an op are recomputed in the backward.
    later: where products leave their weight gradients; None has them in the backward.
    """

    block: Block
    mesh: Mesh
    sequence_length: int
    positions: Tensor
    stream_positions: Tensor
    ids: Tensor
    targets: Tensor
    memory: Regather | None = None
    selective: bool = False
    later: Later | None = None

    def positions_of(self, op: Op) -> Tensor:
        """Positions of the tokens that the op sees."""
        return self.positions if op.tp_dims else self.stream_positions

    def product(self, function: Product, x: Tensor, weight: Tensor) -> Tensor:
        """``function(x, weight)``, its weight gradient now or later."""
        return product(function, x, weight, self.later)

    def dims(self, tensor: str) -> tuple[str, ...]:
        """Feature dimensions of a tensor of the block."""
        return self.block.tensors[tensor]
