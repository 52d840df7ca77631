"""OLMo: Llama's layer with norms that have no parameters (arXiv 2402.00838)."""

from dataclasses import replace

from costmodel.model.builder import Norm
from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """Layer norms without scale or bias."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias)
    feed = gated(config)
    config.check()
    norm = Norm(function="layer", scale=False)
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, norm=norm)
    return uniform_model(config, "olmo", sizes, layer)


FAMILY = Family(name="olmo", model_types=("olmo",), build=build)
