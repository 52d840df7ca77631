"""Phi-1 and Phi-2: parallel attention and MLP with biases (arXiv 2306.11644)."""

from dataclasses import replace

from costmodel.model.builder import LAYER
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, rotary_size, uniform_model


def build(config: Config) -> ModelGraph:
    """One layer norm for both parts, biases everywhere, also on the head."""
    sizes = read_sizes(config)
    attention = replace(
        grouped(config, sizes),
        qkv_bias=True,
        out_bias=True,
        rotary=rotary_size(config, sizes.head_dim, default=0.5),
        qk_norm="head" if config.flag("qk_layernorm", default=False) else "",
        norm=LAYER,
    )
    feed = replace(gated(config, bias=True, function="gelu_new"), gated=False)
    config.check()
    layer = Layer(
        hidden=sizes.hidden, attention=attention, feed=feed, order=Order.PARALLEL, norm=LAYER
    )
    return uniform_model(config, "phi", sizes, layer, head_bias=True)


FAMILY = Family(name="phi", model_types=("phi",), build=build)
