"""InternLM: Llama's layer with biases in attention."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """``bias`` is true unless the config says otherwise (its class default)."""
    sizes = read_sizes(config)
    bias = config.flag("bias", default=True)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias)
    feed = gated(config)
    config.check()
    return uniform_model(
        config, "internlm", sizes, Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    )


FAMILY = Family(name="internlm", model_types=("internlm",), build=build)
