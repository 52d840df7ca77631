"""GPT-J: parallel attention and MLP under one norm."""

from dataclasses import replace

from costmodel.model.builder import LAYER
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Mlp
from costmodel.model.standard import grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """No biases in attention, biases in the MLP and on the head."""
    sizes = read_sizes(config)
    attention = replace(
        grouped(config, sizes), rotary=config.size("rotary_dim", default=64, least=0)
    )
    feed = Mlp(
        ffn=config.optional_size("n_inner") or 4 * sizes.hidden,
        gated=False,
        function=config.word("activation_function", default="gelu_new"),
        bias=True,
    )
    config.check()
    layer = Layer(
        hidden=sizes.hidden, attention=attention, feed=feed, order=Order.PARALLEL, norm=LAYER
    )
    return uniform_model(config, "gptj", sizes, layer, head_bias=True)


FAMILY = Family(name="gptj", model_types=("gptj",), build=build)
