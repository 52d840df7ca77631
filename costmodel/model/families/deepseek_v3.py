"""DeepSeek-V3 and Kimi K2: latent attention, fine-grained and shared experts (arXiv 2412.19437)."""

from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.latent_moe import latent_moe_model


def build(config: Config) -> ModelGraph:
    """As DeepSeek-V2, with multi-token prediction. The router's correction bias is no parameter:
    it is adjusted by a rule and not by gradient descent (section 2.1.2).
    """
    return latent_moe_model(config, "deepseek_v3")


FAMILY = Family(name="deepseek_v3", model_types=("deepseek_v3", "kimi_k2"), build=build)
