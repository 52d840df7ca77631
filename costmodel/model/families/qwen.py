"""Qwen, first generation: fused q, k, v with biases (arXiv 2309.16609)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """``intermediate_size`` is the width of gate and up together."""
    sizes = read_sizes(config)
    head_dim = config.size("kv_channels", default=sizes.head_dim)
    base = replace(sizes, head_dim=head_dim, kv_heads=sizes.heads)
    attention = replace(grouped(config, base), qkv_bias=True)
    both = gated(config)
    config.check()
    feed = replace(both, ffn=both.ffn // 2)
    return uniform_model(
        config, "qwen", sizes, Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    )


FAMILY = Family(name="qwen", model_types=("qwen",), build=build)
