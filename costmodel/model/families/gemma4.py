"""Gemma 4: windows and wide global heads, experts beside a dense MLP, a vision tower."""

from dataclasses import dataclass, replace

from costmodel.model.builder import RMS, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Attention, Experts, Mlp, attention, mlp, routed
from costmodel.model.stack import learned_positions
from costmodel.model.standard import Sizes, decoder_stack, gated, grouped, is_sliding, read_sizes
from costmodel.model.vision import UNCOUNTED_TOKENS, Tower, patch_block, side, tower


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the layers are made of; ``experts`` None: dense only."""

    hidden: int
    near: Attention
    full: Attention
    dense: Mlp
    experts: Experts | None


def build(config: Config) -> ModelGraph:
    """Full layers have heads of ``global_head_dim`` and may use their keys as values."""
    text = config.text()
    sizes = read_sizes(text, tied=True)
    parts = _read_parts(text, sizes)
    sliding = is_sliding(text, sizes.layers, full_every=6)
    _refuse_small_variants(text)
    images = _vision_tower(config.sub("vision_config"), sizes.hidden)
    config.check()
    near, full = (_block(name, parts, a) for name, a in _kinds(parts))
    layers = [near if s else full for s in [*sliding[:-1], False]]
    stack = decoder_stack(sizes, layers)
    if images is not None:
        stack = replace(stack, components=(images,), assumptions=(UNCOUNTED_TOKENS,))
    return stack.graph(config, "gemma4")


def _kinds(parts: Parts) -> tuple[tuple[str, Attention], ...]:
    return ("window", parts.near), ("full", parts.full)


def _read_parts(text: Config, sizes: Sizes) -> Parts:
    bias = text.flag("attention_bias", default=False)
    near = replace(
        grouped(text, sizes),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="head",
        v_norm=True,
        window=text.size("sliding_window", default=512),
    )
    same = text.flag("attention_k_eq_v", default=False)
    wide = text.size("global_head_dim", default=512)
    kv_heads = text.size("num_global_key_value_heads", default=sizes.kv_heads)
    full = replace(near, window=0, qk_dim=wide, v_dim=wide, shared_kv=same)
    full = replace(full, kv_heads=kv_heads) if same else full
    dense = gated(text, function="gelu_pytorch_tanh")
    experts = None
    if text.flag("enable_moe_block", default=False):
        experts = Experts(
            experts=text.size("num_experts"),
            top_k=text.size("top_k_experts"),
            ffn=text.size("moe_intermediate_size"),
            function=dense.function,
        )
    return Parts(hidden=sizes.hidden, near=near, full=full, dense=dense, experts=experts)


def _refuse_small_variants(text: Config) -> None:
    for key in ("hidden_size_per_layer_input", "num_kv_shared_layers"):
        default = 256 if key == "hidden_size_per_layer_input" else 0
        if text.size(key, default=default, least=0):
            text.refuse(key, "must be 0 for this reader", "give the block graph itself")
    if text.flag("use_double_wide_mlp", default=False):
        text.refuse("use_double_wide_mlp", "must be false", "give the block graph itself")


def _block(name: str, parts: Parts, a: Attention) -> Block:
    layer = Layer(hidden=parts.hidden, attention=a, feed=parts.dense, order=Order.SANDWICH)
    if parts.experts is None:
        return layer_block(name, layer)
    b = BlockBuilder(name, {"hidden": parts.hidden})
    y = attention(b, b.norm("attention_norm", "x", RMS), a)
    x = b.add("attention_residual", "x", b.norm("attention_out_norm", y, RMS))
    dense = mlp(b, b.norm("mlp_norm", x, RMS), parts.dense)
    dense = b.norm("dense_out_norm", dense, RMS)
    scores = b.norm("router_norm", x, RMS)
    sparse = routed(b, b.norm("experts_norm", x, RMS), parts.experts, scored=scores, scale=True)
    sparse = b.norm("experts_out_norm", sparse, RMS)
    y = b.norm("mlp_out_norm", b.add("both", dense, sparse), RMS)
    return b.build(b.add("mlp_residual", x, y))


def _vision_tower(vision: Config, out: int) -> Tower | None:
    """Patches with two-dimensional positions, sandwich-norm layers, projection to the decoder."""
    if not vision.document:
        return None
    hidden = vision.size("hidden_size")
    heads = vision.size("num_attention_heads")
    dim = vision.size("head_dim", default=max(1, hidden // heads))
    ffn = vision.size("intermediate_size")
    depth = vision.size("num_hidden_layers")
    positions = vision.size("position_embedding_size", default=10240)
    pixels = 3 * side(vision, "patch_size", 16) ** 2
    attends = Attention(
        heads=heads,
        kv_heads=vision.size("num_key_value_heads", default=heads),
        qk_dim=dim,
        v_dim=dim,
        qk_norm="head",
        v_norm=True,
        causal=False,
    )
    layer = Layer(hidden=hidden, attention=attends, feed=Mlp(ffn=ffn), order=Order.SANDWICH)
    b = patch_block("vision_patches", hidden, pixels, bias=False)
    patches = b.build(learned_positions(b, "patches", 2 * positions))
    b = BlockBuilder("vision_project", {"hidden": hidden, "out": out})
    project = b.build(b.linear("project", "x", ("out",)))
    encoder = layer_block("vision_layer", layer)
    return tower("vision", [(patches, 1), (encoder, depth), (project, 1)])


FAMILY = Family(name="gemma4", model_types=("gemma4", "gemma4_text"), build=build)
