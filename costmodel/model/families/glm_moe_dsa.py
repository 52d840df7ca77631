"""GLM-5 and DeepSeek-V3.2: latent attention over the keys that an indexer selects."""

from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.latent_moe import latent_moe_model


def build(config: Config) -> ModelGraph:
    """As DeepSeek-V3; ``index_topk``, ``index_n_heads`` and ``index_head_dim`` size the indexer."""
    for key in ("index_topk", "index_n_heads", "index_head_dim"):
        config.size(key)
    return latent_moe_model(config, "glm_moe_dsa")


FAMILY = Family(name="glm_moe_dsa", model_types=("glm_moe_dsa", "deepseek_v32"), build=build)
