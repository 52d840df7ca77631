"""InternLM2 and InternLM3: Llama's layer with grouped queries (arXiv 2403.17297)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """``bias`` (2) or ``qkv_bias`` (3) puts biases on the projections; none by default."""
    sizes = read_sizes(config)
    bias = config.flag("bias", "qkv_bias", "attention_bias", default=False)
    out_bias = config.flag("bias", "attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=out_bias)
    feed = gated(config, bias=config.flag("mlp_bias", default=False))
    config.check()
    return uniform_model(
        config, "internlm2", sizes, Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    )


FAMILY = Family(name="internlm2", model_types=("internlm2", "internlm3"), build=build)
