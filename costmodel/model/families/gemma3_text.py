"""Gemma 3, text: as Gemma 2 with q and k norms and five windows to one full (arXiv 2503.19786)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import decoder_model, gated, grouped, is_sliding, read_sizes


def build(config: Config) -> ModelGraph:
    """The window is 4,096 and head_dim 256 unless the config says otherwise."""
    sizes = read_sizes(config, tied=True)
    if config.optional_size("head_dim") is None:
        sizes = replace(sizes, head_dim=256)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias, qk_norm="head")
    window = config.size("sliding_window", default=4096)
    feed = gated(config, function="gelu_pytorch_tanh")
    every = config.size("sliding_window_pattern", default=6)
    sliding = is_sliding(config, sizes.layers, full_every=every)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, order=Order.SANDWICH)
    full = layer_block("full", layer)
    near = layer_block("window", replace(layer, attention=replace(attention, window=window)))
    return decoder_model(config, "gemma3_text", sizes, [near if s else full for s in sliding])


FAMILY = Family(name="gemma3_text", model_types=("gemma3_text",), build=build)
