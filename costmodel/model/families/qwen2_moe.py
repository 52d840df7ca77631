"""Qwen1.5-MoE and Qwen2-MoE: routed experts beside a gated shared one (arXiv 2407.10671)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Experts, Mlp
from costmodel.model.standard import decoder_model, grouped, read_sizes, sparse_layers


def build(config: Config) -> ModelGraph:
    """The shared expert's output is multiplied by a learned sigmoid of each token."""
    sizes = read_sizes(config)
    attention = replace(grouped(config, sizes), qkv_bias=config.flag("qkv_bias", default=True))
    function = config.word("hidden_act", default="silu")
    experts = Experts(
        experts=config.size("num_experts"),
        top_k=config.size("num_experts_per_tok"),
        ffn=config.size("moe_intermediate_size"),
        shared_ffn=config.size("shared_expert_intermediate_size"),
        function=function,
        shared_gate=True,
    )
    sparse = sparse_layers(config, sizes.layers)
    dense = None if all(sparse) else Mlp(ffn=config.size("intermediate_size"), function=function)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=experts)
    moe, plain = layer_block("moe", layer), layer_block("dense", replace(layer, feed=dense))
    layers = [moe if is_sparse else plain for is_sparse in sparse]
    return decoder_model(config, "qwen2_moe", sizes, layers)


FAMILY = Family(name="qwen2_moe", model_types=("qwen2_moe",), build=build)
