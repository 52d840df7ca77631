"""MPT: linear position biases, layer norms without bias, no biases at all."""

from dataclasses import replace

from costmodel.model.builder import Norm
from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Mlp
from costmodel.model.standard import grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """The MLP is ``expansion_ratio`` times as wide as the stream."""
    sizes = read_sizes(config, tied=True)
    attention = replace(grouped(config, sizes), rotary=None, alibi=True)
    ratio = config.size("expansion_ratio", default=4)
    feed = Mlp(ffn=ratio * sizes.hidden, gated=False, function="gelu")
    config.check()
    norm = Norm(function="layer")
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, norm=norm)
    return uniform_model(config, "mpt", sizes, layer)


FAMILY = Family(name="mpt", model_types=("mpt",), build=build)
