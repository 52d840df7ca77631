"""Qwen3.5 and Qwen3-Next: gated delta nets with gated attention in between, experts everywhere."""

from dataclasses import replace

from costmodel.model.builder import RMS, BlockBuilder
from costmodel.model.config import MAX_MTP, Config
from costmodel.model.decoder import Layer, layer_block, run_layer
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.latent_moe import mtp_blocks
from costmodel.model.parts import Attention, Experts
from costmodel.model.qwen_vision import qwen_tower
from costmodel.model.recurrent import DeltaNet, delta_net
from costmodel.model.stack import mtp_ties
from costmodel.model.standard import Sizes, decoder_stack, grouped, read_sizes, rotary_size
from costmodel.model.vision import UNCOUNTED_TOKENS


def build(config: Config) -> ModelGraph:
    """Every ``full_attention_interval``-th layer has attention, unless ``layer_types`` is given."""
    text = config.text()
    sizes = read_sizes(text)
    attention = _read_attention(text, sizes)
    delta = _read_delta(text)
    experts = _read_experts(text)
    full = _is_full(text, sizes.layers)
    depth = text.size("mtp_num_hidden_layers", default=0, least=0, most=MAX_MTP)
    tower = qwen_tower(config.sub("vision_config"))
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=experts)
    attend, linear = layer_block("attention", layer), _delta_block(layer, delta)
    mtp = mtp_blocks(sizes, layer, depth)
    stack = decoder_stack(sizes, [attend if is_full else linear for is_full in full])
    ties = stack.ties + mtp_ties((block.name for block in mtp), tied_head=sizes.tied)
    stack = replace(stack, mtp=mtp, ties=ties)
    if tower is not None:
        stack = replace(stack, components=(tower,), assumptions=(UNCOUNTED_TOKENS,))
    return stack.graph(config, "qwen3_5_moe")


def _read_attention(text: Config, sizes: Sizes) -> Attention:
    bias = text.flag("attention_bias", default=False)
    return replace(
        grouped(text, sizes),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="head",
        gate=text.flag("attn_output_gate", default=True),
        rotary=rotary_size(text, sizes.head_dim, default=0.25),
    )


def _read_delta(text: Config) -> DeltaNet:
    return DeltaNet(
        key_heads=text.size("linear_num_key_heads"),
        value_heads=text.size("linear_num_value_heads"),
        key_dim=text.size("linear_key_head_dim"),
        value_dim=text.size("linear_value_head_dim"),
        kernel=text.size("linear_conv_kernel_dim", default=4),
    )


def _read_experts(text: Config) -> Experts:
    return Experts(
        experts=text.size("num_experts"),
        top_k=text.size("num_experts_per_tok"),
        ffn=text.size("moe_intermediate_size"),
        shared_ffn=text.size("shared_expert_intermediate_size"),
        function=text.word("hidden_act", default="silu"),
        shared_gate=True,
    )


def _is_full(text: Config, layers: int) -> list[bool]:
    types = text.per_layer("layer_types", layers)
    if types is not None:
        return [kind == "full_attention" for kind in types]
    every = text.size("full_attention_interval", default=4)
    return [(index + 1) % every == 0 for index in range(layers)]


def _delta_block(layer: Layer, delta: DeltaNet) -> Block:
    b = BlockBuilder("delta", {"hidden": layer.hidden})
    x = b.add("delta_residual", "x", delta_net(b, b.norm("delta_norm", "x", RMS), delta))
    return b.build(run_layer(b, x, replace(layer, attention=None)))


FAMILY = Family(
    name="qwen3_5_moe",
    model_types=("qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next"),
    build=build,
)
