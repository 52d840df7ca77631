"""Decoders with grouped-query attention whose first layers are dense and the rest have experts."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.graph import ModelGraph
from costmodel.model.latent_moe import LatentMoe, latent_moe_graph, read_experts, read_sparse
from costmodel.model.parts import Attention, Mlp
from costmodel.model.standard import Sizes, read_mtp_depth


def grouped_moe_model(
    config: Config, family: str, sizes: Sizes, attention: Attention
) -> ModelGraph:
    """Experts, dense width and multi-token prediction in DeepSeek's spelling."""
    experts = read_experts(config)
    is_sparse = read_sparse(config, sizes.layers)
    ffn = 1 if all(is_sparse) else config.size("intermediate_size")
    mtp = read_mtp_depth(config)
    config.check()
    sparse = Layer(hidden=sizes.hidden, attention=attention, feed=experts)
    dense = replace(sparse, feed=Mlp(ffn=ffn, function=experts.function))
    parts = LatentMoe(sizes=sizes, dense=dense, sparse=sparse, is_sparse=is_sparse, mtp=mtp)
    return latent_moe_graph(config, family, parts)
