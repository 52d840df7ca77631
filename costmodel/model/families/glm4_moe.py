"""GLM-4.5: grouped queries with biases, shared and routed experts (arXiv 2508.06471)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.grouped_moe import grouped_moe_model
from costmodel.model.standard import grouped, read_sizes, rotary_size


def build(config: Config) -> ModelGraph:
    """Biases on q, k and v only; per-head norms if ``use_qk_norm`` says so."""
    sizes = read_sizes(config)
    attention = replace(
        grouped(config, sizes),
        qkv_bias=config.flag("attention_bias", default=False),
        qk_norm="head" if config.flag("use_qk_norm", default=False) else "",
        rotary=rotary_size(config, sizes.head_dim, default=0.5),
    )
    return grouped_moe_model(config, "glm4_moe", sizes, attention)


FAMILY = Family(name="glm4_moe", model_types=("glm4_moe",), build=build)
