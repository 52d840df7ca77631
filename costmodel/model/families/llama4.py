"""Llama 4: chunked attention, experts beside a shared one, a vision tower."""

from dataclasses import dataclass, replace

from costmodel.model.builder import LAYER, STREAM, BlockBuilder, Norm
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Attention, Experts, Mlp
from costmodel.model.stack import learned_positions
from costmodel.model.standard import Sizes, decoder_stack, grouped, read_sizes
from costmodel.model.vision import UNCOUNTED_TOKENS, Tower, patch_block, side, tower

_DEFAULT_TOWER = "vision tower: sizes of the class defaults, as the config has no vision_config"


@dataclass(frozen=True, slots=True)
class Kind:
    """Whether a layer rotates positions (and looks at its chunk only) and has experts."""

    rope: bool
    sparse: bool


def build(config: Config) -> ModelGraph:
    """Every fourth layer has no positions and sees everything; norms of q and k have no scale."""
    text, vision = config.text(), config.sub("vision_config")
    sizes = read_sizes(text)
    attention = _read_attention(text, sizes)
    chunk = text.size("attention_chunk_size", default=8192)
    function = text.word("hidden_act", default="silu")
    ffn = text.size("intermediate_size")
    experts = Experts(
        experts=text.size("num_local_experts"),
        top_k=text.size("num_experts_per_tok"),
        ffn=ffn,
        shared_ffn=ffn,
        function=function,
    )
    kinds = _read_kinds(text, sizes.layers)
    wide = ffn if all(k.sparse for k in kinds) else text.size("intermediate_size_mlp")
    images = _vision_tower(vision, sizes.hidden)
    config.check()
    near = Layer(hidden=sizes.hidden, attention=replace(attention, chunk=chunk), feed=experts)
    full = replace(attention, rotary=None, qk_norm="")
    blocks: dict[Kind, Block] = {}
    for kind in dict.fromkeys(kinds):
        layer = near if kind.rope else replace(near, attention=full)
        layer = layer if kind.sparse else replace(layer, feed=Mlp(ffn=wide, function=function))
        name = f"{'chunk' if kind.rope else 'full'}_{'moe' if kind.sparse else 'dense'}"
        blocks[kind] = layer_block(name, layer)
    stack = decoder_stack(sizes, [blocks[kind] for kind in kinds])
    notes = (UNCOUNTED_TOKENS,) if vision.document else (UNCOUNTED_TOKENS, _DEFAULT_TOWER)
    return replace(stack, components=(images,), assumptions=notes).graph(config, "llama4")


def _read_attention(text: Config, sizes: Sizes) -> Attention:
    bias = text.flag("attention_bias", default=False)
    return replace(
        grouped(text, sizes),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="head" if text.flag("use_qk_norm", default=True) else "",
        norm=Norm(scale=False),
    )


def _read_kinds(text: Config, layers: int) -> list[Kind]:
    every = text.size("no_rope_layer_interval", default=4)
    ropes = text.per_layer("no_rope_layers", layers) if text.items("no_rope_layers") else None
    rotates = [bool(r) for r in ropes or [(i + 1) % every for i in range(layers)]]
    step = text.size("interleave_moe_layer_step", default=1)
    listed = text.items("moe_layers")
    sparse = [(i + 1) % step == 0 if listed is None else i in listed for i in range(layers)]
    return [Kind(*kind) for kind in zip(rotates, sparse, strict=True)]


def _vision_tower(vision: Config, out: int) -> Tower:
    """Patches with a class token, transformer layers, pixel shuffle, adapter and projector."""
    hidden = vision.size("hidden_size", default=768)
    heads = vision.size("num_attention_heads", default=16)
    ffn = vision.size("intermediate_size", default=5632)
    patch, image = side(vision, "patch_size", 14), side(vision, "image_size", 448)
    channels = vision.size("num_channels", default=3)
    b = patch_block("vision_patches", hidden, channels * patch * patch, bias=False)
    token: dict[str, tuple[str, ...]] = {"class": ("hidden",)}
    x = b.op("opaque", "token", ("patches",), ("hidden",), weights=token, flop_per_token=0)
    x = learned_positions(b, x, (image // patch) ** 2 + 1)
    patches = b.build(b.norm("norm", x, LAYER))
    attention = Attention(
        heads=heads,
        kv_heads=heads,
        qk_dim=max(1, hidden // heads),
        v_dim=max(1, hidden // heads),
        qkv_bias=True,
        out_bias=True,
        causal=False,
    )
    feed = Mlp(ffn=ffn, gated=False, function="gelu", bias=True)
    layer = Layer(hidden=hidden, attention=attention, feed=feed, norm=LAYER)
    depth = vision.size("num_hidden_layers", default=34)
    encoder, adapter = layer_block("vision_layer", layer), _adapter_block(vision, hidden, out)
    return tower("vision", [(patches, 1), (encoder, depth), (adapter, 1)])


def _adapter_block(vision: Config, hidden: int, out: int) -> Block:
    """Two bias-free layers on the shuffled patches, then the projection to the decoder."""
    b = BlockBuilder("vision_adapter", {"hidden": hidden, "out": out})
    b.define(shuffled=vision.size("intermediate_size", default=5632))
    b.define(adapter_in=vision.size("projector_input_dim", default=4096))
    b.define(adapter_out=vision.size("projector_output_dim", default=4096))
    b.define(vision_out=vision.size("vision_output_dim", default=7680))
    x = b.norm("norm", "x", LAYER)
    x = b.op("opaque", "shuffle", (x,), ("shuffled",), flop_per_token=0)
    x = b.linear("fc1", x, ("adapter_in",))
    x = b.activation("act", (x,), "gelu", STREAM)
    x = b.linear("fc2", x, ("adapter_out",))
    x = b.op("opaque", "features", (x,), ("vision_out",), flop_per_token=0)
    return b.build(b.linear("project", x, ("out",)))


FAMILY = Family(name="llama4", model_types=("llama4", "llama4_text"), build=build)
