"""OPT and Galactica: learned positions, layer norms, ReLU (arXiv 2205.01068)."""

from dataclasses import replace

from costmodel.model.builder import LAYER
from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Mlp
from costmodel.model.standard import grouped, positioned_model, read_sizes


def build(config: Config) -> ModelGraph:
    """The table of positions has two more rows than there are positions."""
    sizes = read_sizes(config, tied=True)
    bias = config.flag("enable_bias", default=True)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias, rotary=None)
    feed = Mlp(
        ffn=config.size("ffn_dim"),
        gated=False,
        function=config.word("activation_function", default="relu"),
        bias=bias,
    )
    if config.size("word_embed_proj_dim", default=sizes.hidden) != sizes.hidden:
        config.refuse("word_embed_proj_dim", "must equal hidden_size", "give the block graph")
    if not config.flag("do_layer_norm_before", default=True):
        config.refuse("do_layer_norm_before", "must be true", "give the block graph")
    positions = config.size("max_position_embeddings")
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, norm=LAYER)
    return positioned_model(config, "opt", sizes, layer, positions + 2)


FAMILY = Family(name="opt", model_types=("opt",), build=build)
