"""Qwen3, dense: per-head norms of q and k (arXiv 2505.09388)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """Llama's layer with a norm on each head of q and k."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias, qk_norm="head")
    feed = gated(config)
    config.check()
    return uniform_model(
        config, "qwen3", sizes, Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    )


FAMILY = Family(name="qwen3", model_types=("qwen3",), build=build)
