"""The model graph: blocks of ops over named dimensions.

A *dimension* is a name with a size (``hidden``, ``heads``, ``ffn``, ``vocab``...). Every tensor has
an implicit leading token dimension and a tuple of *feature* dimensions; every weight is a tuple of
dimensions. An op says which of its dimensions the tensor-parallel axis splits (``tp_dims``), and
from that alone follow placements, collectives, shards, FLOPs, bytes and gradients
(``costmodel.model.placement``): the split/broadcast/partial-sum algebra of OneFlow
(arXiv 2110.15032).

Everything here is a frozen value. Sizes are unpadded: vocabulary padding belongs to a layout.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import TypeAlias

Attribute: TypeAlias = int | float | str | bool


def _no_attributes() -> Mapping[str, Attribute]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """One parameter tensor: its name inside the op and its dimensions, outermost first.

    ``count`` is the number of elements when they are not the product of the dimensions (never
    needed by a transformer; a packed buffer may set it). ``trainable`` false means that it has no
    gradient or optimizer state (rotary tables, running statistics are not weights at all).
    """

    name: str
    dims: tuple[str, ...]
    trainable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One tensor operation.

    kind: registry key; one file per kind in ``costmodel/model/ops``.
    inputs, outputs: tensor names of the block.
    tp_dims: the dimensions that the tensor-parallel axis splits (several names when they are one
        split, such as ``heads`` and ``kv_heads``). Empty: the op works token by token on the
        residual stream, so it is replicated over the axis, or split by tokens with sequence
        parallelism.
    attributes: kind-specific constants (``causal``, ``window``, ``top_k``, ``function``...).
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: tuple[Weight, ...] = ()
    tp_dims: tuple[str, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=_no_attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A repeated unit of the model: ops in execution order over named tensors.

    dims: sizes of the feature dimensions.
    tensors: feature dimensions of each tensor.
    inputs: names of the tensors that come from outside: first the residual stream, then, for a
        decoder with cross-attention, the encoder output. Empty for an embedding block, whose
        input is the token ids.
    output: the tensor handed to the next block. Empty for a head block, whose output is the loss.
    stream: the sequence whose tokens the block processes (a key of ``ModelGraph.streams``).
    """

    name: str
    dims: Mapping[str, int]
    tensors: Mapping[str, tuple[str, ...]]
    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    output: str
    stream: str = "main"

    def elements(self, dims: tuple[str, ...]) -> int:
        """Number of elements of a tensor (per token) or weight with these dimensions."""
        return prod(self.dims[dim] for dim in dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """Two weights that are one parameter, as ``block.op.weight`` paths; ``copy`` is not counted.

    When the two ends live on different stages both hold the weight and all-reduce its gradient.
    """

    owner: str
    copy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part beside the main stack (a vision tower), kept whole and replicated on the first stage.

    blocks: (block name, how many times).
    tokens_per_sequence: tokens that it processes per training sequence; None is not stated, so it
        counts for memory only and plans say so.
    """

    name: str
    blocks: tuple[tuple[str, int], ...]
    tokens_per_sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGraph:
    """A model: block definitions and the order in which they run.

    layers: block name of each layer, in pipeline order (encoder layers before decoder layers).
    prologue: blocks before layer 0, on the first stage (token embedding).
    epilogue: blocks after the last layer, on the last stage (final norm, head and loss).
    mtp: blocks of the multi-token-prediction depth, each run after the last layer.
    streams: tokens of each sequence; None means the job's sequence length.
    boundaries: layer index -> blocks that run just before that layer and belong to its stage
        (a decoder's own embedding, an encoder's final norm).
    """

    name: str
    family: str
    blocks: Mapping[str, Block]
    layers: tuple[str, ...]
    prologue: tuple[str, ...]
    epilogue: tuple[str, ...]
    mtp: tuple[str, ...] = ()
    ties: tuple[Tie, ...] = ()
    components: tuple[Component, ...] = ()
    streams: Mapping[str, int | None] = field(
        default_factory=lambda: MappingProxyType({"main": None})
    )
    boundaries: Mapping[int, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    max_sequence_length: int | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def num_layers(self) -> int:
        """Number of layers: what a plan's chunks are ranges of."""
        return len(self.layers)
