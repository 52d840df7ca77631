"""Baichuan 1 and 2: Llama's layer with one fused projection (arXiv 2309.10305)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """The fused projection has the parameters of separate ones; 13B uses linear position biases."""
    sizes = read_sizes(config)
    attention = grouped(config, sizes)
    feed = gated(config)
    config.check()
    if sizes.hidden == 5120:
        attention = replace(attention, rotary=None, alibi=True)
    return uniform_model(
        config, "baichuan", sizes, Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    )


FAMILY = Family(name="baichuan", model_types=("baichuan",), build=build)
