"""Llama 1, 2, 3 and the models that share its layer (arXiv 2302.13971, 2307.09288)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Mlp
from costmodel.model.standard import decoder_model, grouped, read_sizes


def build(config: Config) -> ModelGraph:
    """RMS norms, rotary grouped-query attention, SwiGLU; biases only where the config says so."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias)
    feed = Mlp(
        ffn=config.size("intermediate_size"),
        function=config.word("hidden_act", default="silu"),
        bias=config.flag("mlp_bias", default=False),
    )
    config.check()
    layer = layer_block("layer", Layer(hidden=sizes.hidden, attention=attention, feed=feed))
    return decoder_model(config, "llama", sizes, [layer] * sizes.layers)


FAMILY = Family(name="llama", model_types=("llama",), build=build)
