"""Phi-3.5-MoE: layer norms, biases in attention, experts in every layer (arXiv 2404.14219)."""

from dataclasses import replace

from costmodel.model.builder import LAYER
from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Experts
from costmodel.model.standard import grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """The head has a bias if ``lm_head_bias`` says so."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=False)
    window = config.optional_size("sliding_window") or 0
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias, window=window)
    feed = Experts(
        experts=config.size("num_local_experts"),
        top_k=config.size("num_experts_per_tok"),
        ffn=config.size("intermediate_size"),
        function=config.word("hidden_act", default="silu"),
    )
    head_bias = config.flag("lm_head_bias", default=False)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, norm=LAYER)
    return uniform_model(config, "phimoe", sizes, layer, head_bias=head_bias)


FAMILY = Family(name="phimoe", model_types=("phimoe",), build=build)
