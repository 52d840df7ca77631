"""Seed-OSS: Llama's layer with biases on q, k and v."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """Biases on q, k, v by default; none on the output."""
    sizes = read_sizes(config)
    attention = replace(
        grouped(config, sizes),
        qkv_bias=config.flag("attention_bias", default=True),
        out_bias=config.flag("attention_out_bias", default=False),
    )
    feed = gated(config, bias=config.flag("mlp_bias", default=False))
    config.check()
    return uniform_model(
        config, "seed_oss", sizes, Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    )


FAMILY = Family(name="seed_oss", model_types=("seed_oss",), build=build)
