"""DeepSeek-MoE, first generation: fine-grained and shared experts (arXiv 2401.06066)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.grouped_moe import grouped_moe_model
from costmodel.model.standard import grouped, read_sizes


def build(config: Config) -> ModelGraph:
    """Llama's attention; the first layers dense, the rest with experts."""
    sizes = read_sizes(config)
    bias = config.flag("attention_bias", default=False)
    attention = replace(grouped(config, sizes), qkv_bias=bias, out_bias=bias)
    return grouped_moe_model(config, "deepseek", sizes, attention)


FAMILY = Family(name="deepseek", model_types=("deepseek",), build=build)
