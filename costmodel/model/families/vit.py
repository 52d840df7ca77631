"""ViT: a bidirectional encoder over image patches with a classifier (arXiv 2010.11929)."""

from dataclasses import replace

from costmodel.model.builder import LAYER, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Attention
from costmodel.model.stack import Stack, learned_positions
from costmodel.model.standard import gated, read_layers
from costmodel.model.vision import patch_block, side


def build(config: Config) -> ModelGraph:
    """One token a patch and one for the class; 1,000 classes (ImageNet) unless labels are given."""
    hidden = config.size("hidden_size")
    attention = _read_attention(config, hidden)
    feed = replace(gated(config, bias=True, function="gelu"), gated=False)
    layers = read_layers(config)
    patch = side(config, "patch_size", 16)
    tokens = (side(config, "image_size", 224) // patch) ** 2 + 1
    channels = config.size("num_channels", default=3)
    classes = len(config.sub("id2label").document) or config.size("num_labels", default=1000)
    config.check()
    layer = Layer(hidden=hidden, attention=attention, feed=feed, norm=LAYER)
    return Stack(
        prologue=(_patches(hidden, channels * patch * patch, tokens),),
        layers=[layer_block("layer", layer)] * layers,
        epilogue=(_classifier(hidden, classes),),
        streams={"main": tokens},
        max_sequence_length=tokens,
    ).graph(config, "vit")


def _read_attention(config: Config, hidden: int) -> Attention:
    heads = config.size("num_attention_heads")
    dim = max(1, hidden // heads)
    return Attention(
        heads=heads,
        kv_heads=heads,
        qk_dim=dim,
        v_dim=dim,
        qkv_bias=config.flag("qkv_bias", default=True),
        out_bias=True,
        rotary=None,
        causal=False,
    )


def _patches(hidden: int, patch: int, tokens: int) -> Block:
    b = patch_block("patches", hidden, patch, bias=True)
    token: dict[str, tuple[str, ...]] = {"class": ("hidden",)}
    x = b.op("opaque", "token", ("patches_bias",), ("hidden",), weights=token, flop_per_token=0)
    return b.build(learned_positions(b, x, tokens))


def _classifier(hidden: int, classes: int) -> Block:
    b = BlockBuilder("head", {"hidden": hidden, "classes": classes})
    weights = {"weight": ("classes", "hidden"), "bias": ("classes",)}
    x = b.norm("norm", "x", LAYER)
    b.op("classifier", "classifier", (x,), None, weights=weights, per_sequence=True)
    return b.build("")


FAMILY = Family(name="vit", model_types=("vit",), build=build)
