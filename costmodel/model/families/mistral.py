"""Mistral: Llama's layer with a sliding window (arXiv 2310.06825)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """The window is 4,096 where the config does not name one (its class default); null is none."""
    sizes = read_sizes(config)
    window = config.optional_size("sliding_window") or 0
    if "sliding_window" not in config.document:
        window = 4096
    attention = replace(grouped(config, sizes), window=window)
    feed = gated(config)
    config.check()
    return uniform_model(
        config, "mistral", sizes, Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    )


FAMILY = Family(name="mistral", model_types=("mistral",), build=build)
