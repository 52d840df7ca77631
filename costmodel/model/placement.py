"""Placements of tensors over the tensor-parallel axis, and the collectives that follow.

The algebra is OneFlow's SBP (arXiv 2110.15032): for each dimension that an op splits, an input
that has it is split, an input that lacks it is broadcast (its gradient is a partial sum), an
output that has it is split and an output that lacks it is a partial sum. Ops that split nothing
work on the residual stream. Wherever a producer's placement differs from a consumer's, a
*conversion* is needed; its collectives forward and backward are a table below. The cost model
prices these conversions, the runner executes them, and the traffic forecast counts them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from costmodel.model.graph import Block, Op, Weight


class Placement(Enum):
    """Where a tensor's values are, over the ranks of one tensor-parallel group."""

    STREAM = "stream"
    """Residual stream: split by tokens with sequence parallelism, else equal on all ranks."""
    SPLIT = "split"
    """Split on one of the op's ``tp_dims``."""
    BROADCAST = "broadcast"
    """Equal on all ranks; the gradient that arrives is a partial sum."""
    PARTIAL = "partial"
    """Partial sums; the value is their sum."""


class Collective(Enum):
    """A collective over one group. The payload is the whole (unsplit) tensor in every case."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """One change of placement of one tensor.

    elements_per_token: elements of the whole tensor per token.
    """

    tensor: str
    source: Placement
    target: Placement
    elements_per_token: int


_AR, _AG, _RS = Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER
_Steps = tuple[tuple[Collective, ...], tuple[Collective, ...]]

_WITH_SEQUENCE_PARALLEL: dict[tuple[Placement, Placement], _Steps] = {
    (Placement.PARTIAL, Placement.STREAM): ((_RS,), (_AG,)),
    (Placement.STREAM, Placement.BROADCAST): ((_AG,), (_AG, _RS)),
    (Placement.PARTIAL, Placement.BROADCAST): ((_AR,), (_AR,)),
    (Placement.SPLIT, Placement.BROADCAST): ((_AG,), (_AG, _RS)),
}
_WITHOUT_SEQUENCE_PARALLEL: dict[tuple[Placement, Placement], _Steps] = {
    (Placement.PARTIAL, Placement.STREAM): ((_AR,), ()),
    (Placement.STREAM, Placement.BROADCAST): ((), (_AR,)),
    (Placement.PARTIAL, Placement.BROADCAST): ((_AR,), (_AR,)),
    (Placement.SPLIT, Placement.BROADCAST): ((_AG,), (_AG, _RS)),
}


def collectives(
    conversion: Conversion, *, sequence_parallel: bool
) -> tuple[tuple[Collective, ...], tuple[Collective, ...]]:
    """Collectives of a conversion over the tp group: (forward, backward).

    With sequence parallelism the gathered input is not kept, so the backward gathers it again
    before the weight gradient (Korthikanti et al., arXiv 2205.05198, section 4.2.2).
    Raises KeyError for a change that no op of a valid graph asks for.
    """
    table = _WITH_SEQUENCE_PARALLEL if sequence_parallel else _WITHOUT_SEQUENCE_PARALLEL
    return table[conversion.source, conversion.target]


def splits(op: Op, dims: tuple[str, ...]) -> bool:
    """Whether the tensor-parallel axis splits a tensor or weight with these dimensions."""
    return any(dim in op.tp_dims for dim in dims)


def input_placement(op: Op, block: Block, tensor: str) -> Placement:
    """Placement that ``op`` needs of one of its inputs."""
    if not op.tp_dims:
        return Placement.STREAM
    return Placement.SPLIT if splits(op, block.tensors[tensor]) else Placement.BROADCAST


def output_placement(op: Op, block: Block, tensor: str) -> Placement:
    """Placement in which ``op`` leaves one of its outputs."""
    if not op.tp_dims:
        return Placement.STREAM
    return Placement.SPLIT if splits(op, block.tensors[tensor]) else Placement.PARTIAL


def producer_placements(block: Block) -> dict[str, Placement]:
    """Placement in which each tensor of the block is produced; block inputs are the stream."""
    placements = dict.fromkeys(block.inputs, Placement.STREAM)
    for op in block.ops:
        placements |= {name: output_placement(op, block, name) for name in op.outputs}
    return placements


def _needs(block: Block) -> Iterator[tuple[str, Placement]]:
    for op in block.ops:
        for tensor in op.inputs:
            yield tensor, input_placement(op, block, tensor)
    if block.output:
        yield block.output, Placement.STREAM


def conversions(block: Block) -> tuple[Conversion, ...]:
    """Every change of placement in the block, each once however many ops share it."""
    produced = producer_placements(block)
    found: dict[tuple[str, Placement], Conversion] = {}
    for tensor, target in _needs(block):
        source = produced[tensor]
        if source is not target:
            found[tensor, target] = Conversion(
                tensor=tensor,
                source=source,
                target=target,
                elements_per_token=block.elements(block.tensors[tensor]),
            )
    return tuple(found.values())


def is_sharded(op: Op, weight: Weight) -> bool:
    """Whether each tp rank holds a part of the weight (else every rank holds all of it)."""
    return splits(op, weight.dims)


def gradient_is_partial(op: Op, weight: Weight, *, sequence_parallel: bool) -> bool:
    """Whether a replicated weight's gradient must be summed over the tp group.

    True when the op sees only a part of the data on each rank: its tokens (sequence parallelism,
    ops on the stream) or its heads (a per-head norm inside a split region).
    """
    if is_sharded(op, weight):
        return False
    return bool(op.tp_dims) or sequence_parallel
