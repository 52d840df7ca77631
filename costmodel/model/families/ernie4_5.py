"""ERNIE 4.5, dense: Llama's layer, tied by default."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """``use_bias`` puts a bias on every projection."""
    sizes = read_sizes(config, tied=True)
    bias = config.flag("use_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias)
    feed = gated(config, bias=bias)
    config.check()
    return uniform_model(
        config, "ernie4_5", sizes, Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    )


FAMILY = Family(name="ernie4_5", model_types=("ernie4_5",), build=build)
