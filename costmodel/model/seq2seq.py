"""Encoder and decoder layers of sequence-to-sequence models.

The encoder's layers run first, on the stream ``encoder``; a boundary block then starts the
decoder's stream, and what the encoder put out reaches every decoder layer as ``memory``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from costmodel.model.builder import BlockBuilder, Norm
from costmodel.model.graph import Block, Tie
from costmodel.model.parts import Attention, Mlp, attention, mlp
from costmodel.model.stack import Stack, embed, learned_positions

ENCODER = "encoder"
DECODER_TIE = Tie(owner="embedding.embedding.table", copy="decoder_embedding.embedding.table")
"""Decoder input embedding that is the encoder's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of the model. post: norms follow the residual addition (BART) or precede it."""

    hidden: int
    attention: Attention
    feed: Mlp
    norm: Norm
    post: bool = False


def side_block(name: str, side: Side, *, decoder: bool) -> Block:
    """Self-attention, cross-attention on a decoder, feed-forward; each with norm and residual."""
    inputs = {"x": ("hidden",)} | ({"memory": ("hidden",)} if decoder else {})
    stream = "main" if decoder else ENCODER
    b = BlockBuilder(name, {"hidden": side.hidden}, inputs=inputs, stream=stream)
    own = replace(side.attention, causal=decoder)
    other = replace(own, causal=False, buckets=0)

    def half(part: str, x: str) -> str:
        y = x if side.post else b.norm(f"{part}_norm", x, side.norm)
        if part == "mlp":
            y = mlp(b, y, side.feed)
        elif part == "cross":
            y = attention(b, y, other, memory="memory", prefix="cross_")
        else:
            y = attention(b, y, own)
        y = b.add(f"{part}_residual", x, y)
        return b.norm(f"{part}_norm", y, side.norm) if side.post else y

    x = "x"
    for part in ("attention", "cross", "mlp") if decoder else ("attention", "mlp"):
        x = half(part, x)
    return b.build(x)


def norm_block(name: str, hidden: int, norm: Norm) -> Block:
    """The encoder's final norm."""
    b = BlockBuilder(name, {"hidden": hidden}, stream=ENCODER)
    return b.build(b.norm("norm", "x", norm))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInput:
    """A token embedding with learned positions (0 none) and a norm on top, if any."""

    name: str
    stream: str
    positions: int = 0
    norm: Norm | None = None


def token_block(hidden: int, vocab: int, t: TokenInput) -> Block:
    """The block of a token input."""
    b = BlockBuilder(t.name, {"hidden": hidden, "vocab": vocab}, inputs={}, stream=t.stream)
    x = embed(b)
    x = learned_positions(b, x, t.positions) if t.positions else x
    return b.build(x if t.norm is None else b.norm("norm", x, t.norm))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seq2Seq:
    """Blocks of both sides; ``between`` runs before the decoder's first layer."""

    source: Block
    encoder: Sequence[Block]
    between: Sequence[Block]
    decoder: Sequence[Block]
    head: Block
    ties: tuple[Tie, ...]
    max_sequence_length: int | None
    encoder_tokens: int | None = None
    assumptions: tuple[str, ...] = field(default=())


def seq2seq_stack(parts: Seq2Seq) -> Stack:
    """The stack: encoder layers before decoder layers."""
    return Stack(
        prologue=(parts.source,),
        layers=[*parts.encoder, *parts.decoder],
        epilogue=(parts.head,),
        ties=parts.ties,
        streams={ENCODER: parts.encoder_tokens, "main": None},
        boundaries={len(parts.encoder): parts.between},
        max_sequence_length=parts.max_sequence_length,
        assumptions=parts.assumptions,
    )
