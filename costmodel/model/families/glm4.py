"""GLM-4, dense: norms before and after each part, biases on q, k and v (arXiv 2406.12793)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, Order
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.standard import gated, grouped, read_sizes, rotary_size, uniform_model


def build(config: Config) -> ModelGraph:
    """Half of each head is rotated."""
    sizes = read_sizes(config)
    attention = replace(
        grouped(config, sizes),
        qkv_bias=config.flag("attention_bias", default=False),
        rotary=rotary_size(config, sizes.head_dim, default=0.5),
    )
    feed = gated(config)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, order=Order.SANDWICH)
    return uniform_model(config, "glm4", sizes, layer)


FAMILY = Family(name="glm4", model_types=("glm4",), build=build)
