"""SmolLM3: Llama's layer; every fourth layer has no rotary positions."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import decoder_model, gated, grouped, read_sizes


def build(config: Config) -> ModelGraph:
    """``no_rope_layers`` marks with 1 the layers that do rotate."""
    sizes = read_sizes(config, tied=True)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias)
    feed = gated(config, bias=config.flag("mlp_bias", default=False))
    every = config.size("no_rope_layer_interval", default=4)
    rotates = config.per_layer("no_rope_layers", sizes.layers)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    rope = layer_block("layer", layer)
    plain = layer_block("no_rope", replace(layer, attention=replace(attention, rotary=None)))
    pattern = rotates or [(index + 1) % every for index in range(sizes.layers)]
    return decoder_model(config, "smollm3", sizes, [rope if r else plain for r in pattern])


FAMILY = Family(name="smollm3", model_types=("smollm3",), build=build)
