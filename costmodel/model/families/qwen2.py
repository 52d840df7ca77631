"""Qwen2 and Qwen2.5: Llama's layer with biases on q, k and v (arXiv 2407.10671)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import decoder_model, gated, grouped, read_sizes


def build(config: Config) -> ModelGraph:
    """The sliding window applies from layer ``max_window_layers`` on, if it is used at all."""
    sizes = read_sizes(config)
    attention = replace(grouped(config, sizes), qkv_bias=True)
    feed = gated(config)
    used = config.flag("use_sliding_window", default=False)
    window = (config.optional_size("sliding_window") or 0) if used else 0
    full_layers = config.size("max_window_layers", default=28, least=0)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    full = layer_block("layer", layer)
    if not window:
        return decoder_model(config, "qwen2", sizes, [full] * sizes.layers)
    near = layer_block("window", replace(layer, attention=replace(attention, window=window)))
    layers = [full if index < full_layers else near for index in range(sizes.layers)]
    return decoder_model(config, "qwen2", sizes, layers)


FAMILY = Family(name="qwen2", model_types=("qwen2",), build=build)
