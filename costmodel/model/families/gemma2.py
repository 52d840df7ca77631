"""Gemma 2: norms before and after each part, every other layer with a window (arXiv 2408.00118)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import decoder_model, gated, grouped, is_sliding, read_sizes


def build(config: Config) -> ModelGraph:
    """Even layers see a window of 4,096 unless the config says otherwise; odd layers see all."""
    sizes = read_sizes(config, tied=True)
    if config.optional_size("head_dim") is None:
        sizes = replace(sizes, head_dim=256)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias)
    window = config.size("sliding_window", default=4096)
    feed = gated(config, function="gelu_pytorch_tanh")
    sliding = is_sliding(config, sizes.layers, full_every=2)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, order=Order.SANDWICH)
    full = layer_block("full", layer)
    near = layer_block("window", replace(layer, attention=replace(attention, window=window)))
    return decoder_model(config, "gemma2", sizes, [near if s else full for s in sliding])


FAMILY = Family(name="gemma2", model_types=("gemma2",), build=build)
