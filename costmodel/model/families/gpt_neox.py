"""GPT-NeoX and Pythia: parallel attention and MLP with a norm each (arXiv 2204.06745)."""

from dataclasses import replace

from costmodel.model.builder import LAYER
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, rotary_size, uniform_model


def build(config: Config) -> ModelGraph:
    """Biases everywhere but on the head."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=True)
    attention = replace(
        grouped(config, replace(sizes, kv_heads=sizes.heads)),
        qkv_bias=bias,
        out_bias=bias,
        rotary=rotary_size(config, sizes.head_dim, default=0.25),
    )
    feed = replace(gated(config, bias=True, function="gelu"), gated=False)
    parallel = config.flag("use_parallel_residual", default=True)
    config.check()
    order = Order.PARALLEL_TWO_NORMS if parallel else Order.PRE
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, order=order, norm=LAYER)
    return uniform_model(config, "gpt_neox", sizes, layer)


FAMILY = Family(name="gpt_neox", model_types=("gpt_neox",), build=build)
