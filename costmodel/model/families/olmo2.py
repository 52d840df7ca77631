"""OLMo 2: norms after each part, and on all of q and k together (arXiv 2501.00656)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """The norm of q spans all heads, so its statistics are summed over tensor-parallel ranks."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias, qk_norm="full")
    feed = gated(config)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, order=Order.OUTPUT)
    return uniform_model(config, "olmo2", sizes, layer)


FAMILY = Family(name="olmo2", model_types=("olmo2",), build=build)
