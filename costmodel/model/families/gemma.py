"""Gemma: Llama's layer with wide heads and GeGLU (arXiv 2403.08295)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """head_dim is 256 unless the config says otherwise (its class default)."""
    sizes = read_sizes(config, tied=True)
    if config.optional_size("head_dim") is None:
        sizes = replace(sizes, head_dim=256)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias)
    feed = gated(config, function="gelu_pytorch_tanh")
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    return uniform_model(config, "gemma", sizes, layer)


FAMILY = Family(name="gemma", model_types=("gemma",), build=build)
