"""MiniCPM and MiniCPM-MoE: Llama's layer, tied, some with experts (arXiv 2404.06395)."""

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Experts
from costmodel.model.standard import gated, grouped, read_sizes, uniform_model


def build(config: Config) -> ModelGraph:
    """``num_experts`` above 1 makes every layer a mixture of MLPs of ``intermediate_size``."""
    sizes = read_sizes(config, tied=True)
    attention = grouped(config, sizes)
    feed = gated(config)
    experts = config.size("num_experts", default=1)
    top_k = config.size("num_experts_per_tok") if experts > 1 else 1
    config.check()
    if experts > 1:
        feed = Experts(experts=experts, top_k=top_k, ffn=feed.ffn, function=feed.function)
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    return uniform_model(config, "minicpm", sizes, layer)


FAMILY = Family(name="minicpm", model_types=("minicpm",), build=build)
