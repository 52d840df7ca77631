"""Qwen3 mixture of experts (arXiv 2505.09388)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Experts, Mlp
from costmodel.model.standard import decoder_model, grouped, read_sizes, sparse_layers


def build(config: Config) -> ModelGraph:
    """Per-head norms of q and k; experts on every ``decoder_sparse_step``-th layer."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias, qk_norm="head")
    function = config.word("hidden_act", default="silu")
    experts = Experts(
        experts=config.size("num_experts", "num_local_experts"),
        top_k=config.size("num_experts_per_tok"),
        ffn=config.size("moe_intermediate_size"),
        function=function,
    )
    sparse = sparse_layers(config, sizes.layers)
    dense = None if all(sparse) else Mlp(ffn=config.size("intermediate_size"), function=function)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=experts)
    moe = layer_block("moe", layer)
    plain = layer_block("dense", replace(layer, feed=dense))
    layers = [moe if is_sparse else plain for is_sparse in sparse]
    return decoder_model(config, "qwen3_moe", sizes, layers)


FAMILY = Family(name="qwen3_moe", model_types=("qwen3_moe",), build=build)
