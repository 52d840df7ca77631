"""Phi-3 and Phi-4: Llama's layer with fused projections (arXiv 2404.14219)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, rotary_size, uniform_model


def build(config: Config) -> ModelGraph:
    """Fused qkv and gate-up have the parameters of separate ones."""
    sizes = read_sizes(config)
    window = config.optional_size("sliding_window") or 0
    rotary = rotary_size(config, sizes.head_dim, default=1.0)
    attention = replace(grouped(config, sizes), window=window, rotary=rotary)
    feed = gated(config)
    config.check()
    return uniform_model(
        config, "phi3", sizes, Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    )


FAMILY = Family(name="phi3", model_types=("phi3",), build=build)
