"""Transformer layers of the usual shapes, from an attention part and a feed-forward part."""

from dataclasses import dataclass
from enum import Enum

from costmodel.model.builder import RMS, BlockBuilder, Norm
from costmodel.model.graph import Block
from costmodel.model.parts import (
    Attention,
    Experts,
    LatentAttention,
    Mlp,
    attention,
    latent_attention,
    mlp,
    moe,
)


class Order(Enum):
    """Where the norms and residual additions of a layer stand."""

    PRE = "pre"
    """x + attention(norm x), then the same with the feed-forward part."""
    POST = "post"
    """norm(x + attention x): the original transformer and BERT."""
    OUTPUT = "output"
    """x + norm(attention x): OLMo-2."""
    SANDWICH = "sandwich"
    """x + norm(attention(norm x)): Gemma-2, GLM-4."""
    PARALLEL = "parallel"
    """x + attention(norm x) + mlp(norm x) with one norm: GPT-J, Phi, Cohere."""
    PARALLEL_TWO_NORMS = "parallel_two_norms"
    """The same with a norm for each part: GPT-NeoX, Falcon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What a layer is made of; ``attention`` or ``feed`` None leaves that half out."""

    hidden: int
    attention: Attention | LatentAttention | None
    feed: Mlp | Experts | None
    order: Order = Order.PRE
    norm: Norm = RMS


def layer_block(name: str, layer: Layer) -> Block:
    """The block of one layer."""
    b = BlockBuilder(name, {"hidden": layer.hidden})
    return b.build(run_layer(b, "x", layer))


def run_layer(b: BlockBuilder, x: str, layer: Layer) -> str:
    """Adds the layer's ops to a block (a multi-token-prediction block runs a layer inside)."""
    if layer.order in (Order.PARALLEL, Order.PARALLEL_TWO_NORMS):
        return _parallel(b, x, layer)
    if layer.attention is not None:
        x = _half(b, x, layer, "attention")
    return _half(b, x, layer, "mlp") if layer.feed is not None else x


def _half(b: BlockBuilder, x: str, layer: Layer, which: str) -> str:
    y = x
    if layer.order in (Order.PRE, Order.SANDWICH):
        y = b.norm(f"{which}_norm", y, layer.norm)
    y = _attend(b, y, layer) if which == "attention" else _feed(b, y, layer)
    if layer.order in (Order.OUTPUT, Order.SANDWICH):
        y = b.norm(f"{which}_out_norm", y, layer.norm)
    y = b.add(f"{which}_residual", x, y)
    return b.norm(f"{which}_norm", y, layer.norm) if layer.order is Order.POST else y


def _parallel(b: BlockBuilder, x: str, layer: Layer) -> str:
    y = b.norm("norm", x, layer.norm)
    z = b.norm("mlp_norm", x, layer.norm) if layer.order is Order.PARALLEL_TWO_NORMS else y
    both = b.add("both", _attend(b, y, layer), _feed(b, z, layer))
    return b.add("residual", x, both)


def _attend(b: BlockBuilder, x: str, layer: Layer) -> str:
    if isinstance(layer.attention, LatentAttention):
        return latent_attention(b, x, layer.attention)
    if layer.attention is None:
        raise ValueError(f"{b.name} has no attention")
    return attention(b, x, layer.attention)


def _feed(b: BlockBuilder, x: str, layer: Layer) -> str:
    if isinstance(layer.feed, Experts):
        return moe(b, x, layer.feed)
    if layer.feed is None:
        raise ValueError(f"{b.name} has no feed-forward part")
    return mlp(b, x, layer.feed)
