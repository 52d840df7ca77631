"""The vision tower of Qwen3-VL and Qwen3.5."""

from costmodel.model.builder import LAYER
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.graph import Block
from costmodel.model.parts import Attention, Mlp
from costmodel.model.stack import learned_positions
from costmodel.model.vision import Merger, Tower, merger_block, patch_block, side, tower


def qwen_tower(vision: Config) -> Tower | None:
    """Patches, transformer blocks, a merger, and one more merger for each DeepStack level."""
    if not vision.document:
        return None
    hidden = vision.size("hidden_size")
    depth = vision.size("depth")
    factor = vision.size("spatial_merge_size", default=2) ** 2
    out = vision.size("out_hidden_size")
    levels = len(vision.items("deepstack_visual_indexes") or [])
    layer = _read_layer(vision, hidden)
    patches = _read_patches(vision, hidden)
    if vision.violations:
        return None
    merger = Merger(factor=factor, out=out)
    parts = [(patches, 1), (layer_block("vision_layer", layer), depth)]
    parts += [(merger_block("vision_merger", hidden, merger), 1)]
    if levels:
        deep = Merger(factor=factor, out=out, norm_first=False)
        parts += [(merger_block("vision_deep_merger", hidden, deep), levels)]
    return tower("vision", parts)


def _read_layer(vision: Config, hidden: int) -> Layer:
    heads = vision.size("num_heads", "num_attention_heads")
    dim = max(1, hidden // heads)
    attention = Attention(
        heads=heads,
        kv_heads=heads,
        qk_dim=dim,
        v_dim=dim,
        qkv_bias=True,
        out_bias=True,
        causal=False,
    )
    feed = Mlp(ffn=vision.size("intermediate_size"), gated=False, function="gelu", bias=True)
    return Layer(hidden=hidden, attention=attention, feed=feed, norm=LAYER)


def _read_patches(vision: Config, hidden: int) -> Block:
    pixels = side(vision, "patch_size", 16) ** 2 * side(vision, "temporal_patch_size", 2)
    pixels *= vision.size("in_channels", default=3)
    positions = vision.size("num_position_embeddings", default=2304)
    b = patch_block("vision_patches", hidden, pixels, bias=True)
    return b.build(learned_positions(b, "patches_bias", positions))
