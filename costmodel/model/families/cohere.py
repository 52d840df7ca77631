"""Command R and Aya: parallel attention and MLP under one layer norm."""

from dataclasses import replace

from costmodel.model.builder import Norm
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """Layer norms have a scale and no bias; embeddings are tied by default."""
    sizes = read_sizes(config, tied=True)
    bias = config.flag("attention_bias", default=False)
    norm = Norm(function="layer")
    attention = replace(
        grouped(config, sizes),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="each" if config.flag("use_qk_norm", default=False) else "",
        norm=norm,
    )
    feed = gated(config)
    config.check()
    layer = Layer(
        hidden=sizes.hidden, attention=attention, feed=feed, order=Order.PARALLEL, norm=norm
    )
    return uniform_model(config, "cohere", sizes, layer)


FAMILY = Family(name="cohere", model_types=("cohere",), build=build)
