"""BERT: a bidirectional encoder with a masked-language head (arXiv 1810.04805)."""

from dataclasses import replace

from costmodel.model.builder import LAYER, STREAM, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.stack import TIED_HEAD, Stack, embed, head, learned_positions
from costmodel.model.standard import Sizes, gated, grouped, read_sizes


def build(config: Config) -> ModelGraph:
    """Norms after each residual addition; embeddings of tokens, positions and segments."""
    sizes = read_sizes(config, tied=True)
    attention = replace(
        grouped(config, replace(sizes, kv_heads=sizes.heads)),
        qkv_bias=True,
        out_bias=True,
        rotary=None,
        causal=False,
    )
    feed = replace(gated(config, bias=True, function="gelu"), gated=False)
    positions = config.size("max_position_embeddings")
    types = config.size("type_vocab_size", default=2)
    if config.flag("is_decoder", default=False) or config.flag(
        "add_cross_attention", default=False
    ):
        config.refuse("is_decoder", "must be false", "give the block graph itself")
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, order=Order.POST, norm=LAYER)
    return Stack(
        prologue=(_embedding_block(sizes, positions, types),),
        layers=[layer_block("layer", layer)] * sizes.layers,
        epilogue=(_head_block(sizes, feed.function),),
        ties=(TIED_HEAD,) if sizes.tied else (),
        max_sequence_length=positions,
    ).graph(config, "bert")


def _embedding_block(sizes: Sizes, positions: int, types: int) -> Block:
    dims = {"hidden": sizes.hidden, "vocab": sizes.vocab, "types": types}
    b = BlockBuilder("embedding", dims, inputs={})
    x = learned_positions(b, embed(b), positions)
    table = {"table": ("types", "hidden")}
    x = b.op("position", "segment", (x,), ("hidden",), weights=table, by="segment")
    return b.build(b.norm("norm", x, LAYER))


def _head_block(sizes: Sizes, function: str) -> Block:
    dims = {"hidden": sizes.hidden, "vocab": sizes.vocab, "transformed": sizes.hidden}
    b = BlockBuilder("head", dims)
    x = b.linear("transform", "x", ("transformed",), bias=True)
    x = b.norm("norm", b.activation("act", (x,), function, STREAM), LAYER)
    head(b, x, bias=True)
    return b.build("")


FAMILY = Family(name="bert", model_types=("bert",), build=build)
