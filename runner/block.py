"""Interprets one block on one rank: its ops in order, with the conversions between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from torch import Tensor

from costmodel.model.graph import Block, Op
from costmodel.model.placement import (
    Conversion,
    Placement,
    collectives,
    conversions,
    input_placement,
    producer_placements,
)
from runner.convert import convert
from runner.ops.registry import local
from runner.place import Place
from runner.recompute import again

TOKEN_AXIS = 1
FIRST_FEATURE_AXIS = 2
RECOMPUTED_BY_SELECTIVE = frozenset({"attention", "activation"})

OpWeights = Mapping[tuple[str, str], Tensor]
"""(op name, weight name) -> this rank's shard."""


@dataclass(frozen=True, kw_only=True)
class BlockProgram:
    """A block as it runs under one stage option."""

    block: Block
    sequence_parallel: bool

    @cached_property
    def produced(self) -> dict[str, Placement]:
        """Placement in which each tensor is produced."""
        return producer_placements(self.block)

    @cached_property
    def changes(self) -> dict[tuple[str, Placement], Conversion]:
        """Conversions by tensor and target."""
        return {(c.tensor, c.target): c for c in conversions(self.block)}

    @cached_property
    def makers(self) -> dict[str, Op]:
        """The op that makes each tensor."""
        return {name: op for op in self.block.ops for name in op.outputs}

    def run(
        self, x: Tensor | None, weights: OpWeights, place: Place
    ) -> tuple[Tensor | None, Tensor | None]:
        """Output on the stream and loss per sequence; None for what the block does not have."""
        tensors = _Tensors(self, place)
        if x is not None:
            tensors.set(self.block.inputs[0], x)
        losses: list[Tensor] = []
        for op in self.block.ops:
            inputs = tuple(
                tensors.get(name, input_placement(op, self.block, name)) for name in op.inputs
            )
            mine = {weight.name: weights[op.name, weight.name] for weight in op.weights}
            result = run_op(op, inputs, mine, place)
            if op.outputs:
                tensors.set(op.outputs[0], result)
            else:
                losses.append(result)
        output = tensors.get(self.block.output, Placement.STREAM) if self.block.output else None
        return output, sum(losses[1:], losses[0]) if losses else None


def run_op(
    op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place
) -> Tensor:
    """One op; with selective recomputation some kinds keep only their inputs."""
    run = local(op.kind)
    if not (place.selective and op.kind in RECOMPUTED_BY_SELECTIVE):
        return run(op, inputs, weights, place)
    names, count = tuple(weights), len(inputs)
    keeping = replace(place, memory=None)

    def function(*values: Tensor) -> Tensor:
        named = dict(zip(names, values[count:], strict=True))
        return run(op, values[:count], named, keeping)

    return again(function, (*inputs, *weights.values()))


class _Tensors:
    """Tensors of one run of a block, each in the placements that were asked for."""

    def __init__(self, program: BlockProgram, place: Place) -> None:
        self.program = program
        self.place = place
        self.known: dict[tuple[str, Placement], Tensor] = {}

    def set(self, name: str, value: Tensor) -> None:
        self.known[name, self.program.produced[name]] = value

    def get(self, name: str, target: Placement) -> Tensor:
        source = self.program.produced[name]
        if self.place.mesh.tp.size == 1 or source is target:
            return self.known[name, source]
        if (name, target) not in self.known:
            self.known[name, target] = self._convert(name, source, target)
        return self.known[name, target]

    def _convert(self, name: str, source: Placement, target: Placement) -> Tensor:
        change = self.program.changes[name, target]
        steps = collectives(change, sequence_parallel=self.program.sequence_parallel)
        axis = self._split_axis(name) if source is Placement.SPLIT else TOKEN_AXIS
        value = self.known[name, source]
        return convert(value, steps, self.place.mesh.tp, axis, self.place.memory)

    def _split_axis(self, name: str) -> int:
        split = self.program.makers[name].tp_dims
        dims = self.program.block.tensors[name]
        return FIRST_FEATURE_AXIS + next(i for i, dim in enumerate(dims) if dim in split)
