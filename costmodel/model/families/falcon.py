"""Falcon: parallel attention and MLP, one shared or a few kv heads (arXiv 2311.16867)."""

from dataclasses import replace

from costmodel.model.builder import LAYER
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Mlp
from costmodel.model.standard import Sizes, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """The new decoder architecture (40B, 180B) has grouped kv heads and two norms."""
    new = config.flag("new_decoder_architecture", default=False)
    sizes = replace(read_sizes(config, tied=True))
    sizes = replace(sizes, kv_heads=_kv_heads(config, sizes, new=new))
    bias = config.flag("bias", default=False)
    alibi = config.flag("alibi", default=False)
    attention = replace(
        grouped(config, sizes),
        qkv_bias=bias,
        out_bias=bias,
        alibi=alibi,
        rotary=None if alibi else 0,
    )
    ffn = config.size("ffn_hidden_size", default=4 * sizes.hidden)
    order = _order(config, new=new)
    config.check()
    feed = Mlp(ffn=ffn, gated=False, function="gelu", bias=bias)
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, order=order, norm=LAYER)
    return uniform_model(config, "falcon", sizes, layer)


def _kv_heads(config: Config, sizes: Sizes, *, new: bool) -> int:
    if new:
        return config.size("num_kv_heads", default=sizes.heads)
    return 1 if config.flag("multi_query", default=True) else sizes.heads


def _order(config: Config, *, new: bool) -> Order:
    if not new and not config.flag("parallel_attn", default=True):
        return Order.PRE
    norms = config.size("num_ln_in_parallel_attn", default=2 if new else 1)
    return Order.PARALLEL_TWO_NORMS if norms == 2 else Order.PARALLEL


FAMILY = Family(name="falcon", model_types=("falcon",), build=build)
