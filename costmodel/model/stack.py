"""Puts blocks together to a model: embedding, layers, head, ties, multi-token prediction."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from costmodel.model.builder import RMS, BlockBuilder, Dims, Norm
from costmodel.model.config import Config
from costmodel.model.graph import Block, Component, ModelGraph, Tie

VOCAB: Dims = ("vocab",)
TIED_HEAD = Tie(owner="embedding.embedding.table", copy="head.head.weight")
"""Output head that is the transposed input embedding."""


def embed(b: BlockBuilder, name: str = "embedding") -> str:
    """Vocabulary-parallel token embedding."""
    return b.op(
        "embedding", name, (), ("hidden",), weights={"table": ("vocab", "hidden")}, tp=VOCAB
    )


def learned_positions(b: BlockBuilder, x: str, positions: int, name: str = "position") -> str:
    """Adds a learned vector for each position."""
    b.define(positions=positions)
    return b.op("position", name, (x,), ("hidden",), weights={"table": ("positions", "hidden")})


def head(b: BlockBuilder, x: str, *, bias: bool = False) -> None:
    """Logits over the vocabulary and the loss."""
    weights: dict[str, Dims] = {"weight": VOCAB + b.tensors[x]}
    weights |= {"bias": VOCAB} if bias else {}
    b.op("head", "head", (x,), None, weights=weights, tp=VOCAB)


def embedding_block(hidden: int, vocab: int, *, positions: int = 0) -> Block:
    """Token embedding, with learned positions if there are any."""
    b = BlockBuilder("embedding", {"hidden": hidden, "vocab": vocab}, inputs={})
    x = embed(b)
    return b.build(learned_positions(b, x, positions) if positions else x)


def head_block(hidden: int, vocab: int, norm: Norm | None = RMS, *, bias: bool = False) -> Block:
    """Final norm (if any) and head."""
    b = BlockBuilder("head", {"hidden": hidden, "vocab": vocab})
    head(b, "x" if norm is None else b.norm("norm", "x", norm), bias=bias)
    return b.build("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Blocks of a model in the order in which they run; fields as in ``ModelGraph``."""

    prologue: Sequence[Block]
    layers: Sequence[Block]
    epilogue: Sequence[Block]
    ties: tuple[Tie, ...] = ()
    mtp: Sequence[Block] = ()
    components: Sequence[tuple[Component, Sequence[Block]]] = ()
    streams: Mapping[str, int | None] = field(default_factory=lambda: {"main": None})
    boundaries: Mapping[int, Sequence[Block]] = field(default_factory=dict[int, Sequence[Block]])
    max_sequence_length: int | None = None
    assumptions: tuple[str, ...] = ()

    def graph(self, config: Config, family: str) -> ModelGraph:
        """The model graph; blocks of one name are one definition."""
        return ModelGraph(
            name=config.name or family,
            family=family,
            blocks=MappingProxyType({block.name: block for block in self._blocks()}),
            layers=_names(self.layers),
            prologue=_names(self.prologue),
            epilogue=_names(self.epilogue),
            mtp=_names(self.mtp),
            ties=self.ties,
            components=tuple(component for component, _ in self.components),
            streams=MappingProxyType(dict(self.streams)),
            boundaries=MappingProxyType({at: _names(b) for at, b in self.boundaries.items()}),
            max_sequence_length=self.max_sequence_length,
            assumptions=self.assumptions,
        )

    def _blocks(self) -> Iterator[Block]:
        yield from (*self.prologue, *self.layers, *self.epilogue, *self.mtp)
        for _, blocks in self.components:
            yield from blocks
        for blocks in self.boundaries.values():
            yield from blocks


def _names(blocks: Iterable[Block]) -> tuple[str, ...]:
    return tuple(block.name for block in blocks)


def mtp_input(b: BlockBuilder, norm: Norm = RMS) -> str:
    """Start of a multi-token-prediction block: joins the stream with the next token's embedding.

    DeepSeek-V3, arXiv 2412.19437, section 2.2: h' = M [norm(h); norm(embedding)].
    """
    b.define(double_hidden=2 * b.dims["hidden"])
    token = b.norm("embedding_norm", embed(b), norm)
    stream = b.norm("stream_norm", "x", norm)
    both = b.concat("joined", stream, token, ("double_hidden",))
    return b.linear("join", both, ("hidden",))


def mtp_output(b: BlockBuilder, x: str, norm: Norm = RMS) -> Block:
    """End of a multi-token-prediction block: its own norm, then the shared head."""
    head(b, b.norm("norm", x, norm))
    return b.build(x)


def mtp_ties(names: Iterable[str], *, tied_head: bool) -> tuple[Tie, ...]:
    """Embedding and head of multi-token-prediction blocks are those of the main model."""
    owner = "embedding.embedding.table"
    weight = owner if tied_head else "head.head.weight"
    return tuple(
        tie
        for name in names
        for tie in (
            Tie(owner=owner, copy=f"{name}.embedding.table"),
            Tie(owner=weight, copy=f"{name}.head.weight"),
        )
    )
