"""gpt-oss: attention sinks, alternating windows, experts with biases (arXiv 2508.10925)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Experts
from costmodel.model.standard import decoder_model, grouped, is_sliding, read_sizes


def build(config: Config) -> ModelGraph:
    """Even layers see a window of 128 unless the config says otherwise; odd layers see all."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=True)
    full = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias, sinks=True)
    window = config.size("sliding_window", default=128)
    feed = Experts(
        experts=config.size("num_local_experts"),
        top_k=config.size("num_experts_per_tok", "experts_per_token"),
        ffn=config.size("intermediate_size"),
        function=config.word("hidden_act", default="silu"),
        bias=True,
        router_bias=True,
    )
    sliding = is_sliding(config, sizes.layers, full_every=2)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=full, feed=feed)
    every = layer_block("full", layer)
    near = layer_block("window", replace(layer, attention=replace(full, window=window)))
    return decoder_model(config, "gpt_oss", sizes, [near if s else every for s in sliding])


FAMILY = Family(name="gpt_oss", model_types=("gpt_oss",), build=build)
