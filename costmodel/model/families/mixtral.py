"""Mixtral: Mistral's layer with a mixture of experts (arXiv 2401.04088)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Experts
from costmodel.model.standard import decoder_model, grouped, read_sizes


def build(config: Config) -> ModelGraph:
    """Every layer routes to top-k of the local experts."""
    sizes = read_sizes(config)
    window = config.optional_size("sliding_window") or 0
    attention = replace(grouped(config, sizes), window=window)
    feed = Experts(
        experts=config.size("num_local_experts"),
        top_k=config.size("num_experts_per_tok"),
        ffn=config.size("intermediate_size"),
        function=config.word("hidden_act", default="silu"),
    )
    config.check()
    layer = layer_block("layer", Layer(hidden=sizes.hidden, attention=attention, feed=feed))
    return decoder_model(config, "mixtral", sizes, [layer] * sizes.layers)


FAMILY = Family(name="mixtral", model_types=("mixtral",), build=build)
