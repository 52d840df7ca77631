"""Nemotron-4: layer norms and a squared-ReLU MLP (arXiv 2402.16819)."""

from dataclasses import replace

from costmodel.model.builder import LAYER
from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, rotary_size, uniform_model


def build(config: Config) -> ModelGraph:
    """Layer norms with bias; the MLP has no gate."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=False)
    attention = replace(
        grouped(config, sizes),
        qkv_bias=bias,
        out_bias=bias,
        rotary=rotary_size(config, sizes.head_dim, default=0.5),
    )
    mlp_bias = config.flag("mlp_bias", default=False)
    feed = replace(gated(config, bias=mlp_bias, function="relu2"), gated=False)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, norm=LAYER)
    return uniform_model(config, "nemotron", sizes, layer)


FAMILY = Family(name="nemotron", model_types=("nemotron",), build=build)
