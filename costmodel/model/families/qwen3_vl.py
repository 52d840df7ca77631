"""Qwen3-VL: Qwen3's decoder with a vision tower (arXiv 2511.21631)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.qwen_vision import qwen_tower
from costmodel.model.standard import decoder_stack, gated, grouped, read_sizes
from costmodel.model.vision import UNCOUNTED_TOKENS


def build(config: Config) -> ModelGraph:
    """The language model is under ``text_config``, the tower under ``vision_config``."""
    text = config.text()
    sizes = read_sizes(text)
    bias = text.flag("attention_bias", default=False)
    attention = replace(grouped(text, sizes), qkv_bias=bias, out_bias=bias, qk_norm="head")
    feed = gated(text)
    tower = qwen_tower(config.sub("vision_config"))
    config.check()
    layer = layer_block("layer", Layer(hidden=sizes.hidden, attention=attention, feed=feed))
    stack = decoder_stack(sizes, [layer] * sizes.layers)
    if tower is not None:
        stack = replace(stack, components=(tower,), assumptions=(UNCOUNTED_TOKENS,))
    return stack.graph(config, "qwen3_vl")


FAMILY = Family(name="qwen3_vl", model_types=("qwen3_vl", "qwen3_vl_text"), build=build)
