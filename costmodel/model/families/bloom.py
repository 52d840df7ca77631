"""BLOOM: linear position biases, a norm on the embedding, biases everywhere (arXiv 2211.05100)."""

from dataclasses import replace

from costmodel.model.builder import LAYER, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Mlp
from costmodel.model.stack import TIED_HEAD, Stack, embed, head_block
from costmodel.model.standard import Sizes, grouped, read_sizes


def build(config: Config) -> ModelGraph:
    """The MLP is four times as wide as the stream."""
    sizes = read_sizes(config, tied=True)
    heads = replace(sizes, kv_heads=sizes.heads)
    attention = replace(
        grouped(config, heads), qkv_bias=True, out_bias=True, rotary=None, alibi=True
    )
    feed = Mlp(
        ffn=config.optional_size("n_inner") or 4 * sizes.hidden,
        gated=False,
        function="gelu",
        bias=True,
    )
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, norm=LAYER)
    return Stack(
        prologue=(_embedding(sizes),),
        layers=[layer_block("layer", layer)] * sizes.layers,
        epilogue=(head_block(sizes.hidden, sizes.vocab, LAYER),),
        ties=(TIED_HEAD,) if sizes.tied else (),
        max_sequence_length=sizes.positions,
    ).graph(config, "bloom")


def _embedding(sizes: Sizes) -> Block:
    b = BlockBuilder("embedding", {"hidden": sizes.hidden, "vocab": sizes.vocab}, inputs={})
    return b.build(b.norm("norm", embed(b), LAYER))


FAMILY = Family(name="bloom", model_types=("bloom",), build=build)
