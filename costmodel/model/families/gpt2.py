"""GPT-2 and Cerebras-GPT: learned positions, layer norms, biases everywhere."""

from dataclasses import replace

from costmodel.model.builder import LAYER
from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Mlp
from costmodel.model.standard import grouped, positioned_model, read_sizes


def build(config: Config) -> ModelGraph:
    """The MLP is four times as wide as the stream unless ``n_inner`` says otherwise."""
    sizes = read_sizes(config, tied=True)
    attention = replace(grouped(config, sizes), qkv_bias=True, out_bias=True, rotary=None)
    feed = Mlp(
        ffn=config.optional_size("n_inner") or 4 * sizes.hidden,
        gated=False,
        function=config.word("activation_function", default="gelu_new"),
        bias=True,
    )
    positions = config.size("n_positions", "n_ctx", "max_position_embeddings", default=1024)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed, norm=LAYER)
    return positioned_model(config, "gpt2", sizes, layer, positions)


FAMILY = Family(name="gpt2", model_types=("gpt2",), build=build)
