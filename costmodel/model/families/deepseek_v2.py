"""DeepSeek-V2: multi-head latent attention and fine-grained experts (arXiv 2405.04434)."""

from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.latent_moe import latent_moe_model


def build(config: Config) -> ModelGraph:
    """Latent attention everywhere, experts from layer ``first_k_dense_replace`` on."""
    return latent_moe_model(config, "deepseek_v2")


FAMILY = Family(name="deepseek_v2", model_types=("deepseek_v2",), build=build)
