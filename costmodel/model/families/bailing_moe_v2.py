"""Ling 2.0: grouped queries with norms, shared and routed experts (arXiv 2510.22115)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.grouped_moe import grouped_moe_model
from costmodel.model.standard import grouped, read_sizes, rotary_size


def build(config: Config) -> ModelGraph:
    """Half of each head is rotated; biases only where the config says so."""
    sizes = read_sizes(config)
    attention = replace(
        grouped(config, sizes),
        qkv_bias=config.flag("use_qkv_bias", default=False),
        out_bias=config.flag("use_bias", default=False),
        qk_norm="head" if config.flag("use_qk_norm", default=False) else "",
        rotary=rotary_size(config, sizes.head_dim, default=0.5),
    )
    return grouped_moe_model(config, "bailing_moe_v2", sizes, attention)


FAMILY = Family(name="bailing_moe_v2", model_types=("bailing_moe_v2",), build=build)
