"""The model that DeepSeek-V2, DeepSeek-V3 and their relatives share."""

from dataclasses import dataclass, replace

from costmodel.model.builder import BlockBuilder
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block, run_layer
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Experts, LatentAttention, Mlp
from costmodel.model.stack import (
    TIED_HEAD,
    Stack,
    embedding_block,
    head_block,
    mtp_input,
    mtp_output,
    mtp_ties,
)
from costmodel.model.standard import Sizes, read_layers, read_mtp_depth


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentMoe:
    """A stack of latent-attention layers, dense at first and then with experts."""

    sizes: Sizes
    dense: Layer
    sparse: Layer
    is_sparse: tuple[bool, ...]
    mtp: int


def read_latent_attention(config: Config, heads: int) -> LatentAttention:
    """Latent attention; ``q_lora_rank`` null projects queries directly, missing is an error."""
    rank = None
    if "q_lora_rank" not in config.document:
        config.refuse("q_lora_rank", "is needed", "add the rank, or null for a direct projection")
    else:
        rank = config.optional_size("q_lora_rank")
    top_keys = config.size("index_topk", default=0, least=0)
    return LatentAttention(
        heads=heads,
        q_rank=rank,
        kv_rank=config.size("kv_lora_rank"),
        nope_dim=config.size("qk_nope_head_dim"),
        rope_dim=config.size("qk_rope_head_dim"),
        v_dim=config.size("v_head_dim"),
        bias=config.flag("attention_bias", default=False),
        top_keys=top_keys,
        index_heads=config.size("index_n_heads") if top_keys else 0,
        index_dim=config.size("index_head_dim") if top_keys else 0,
    )


def read_latent_sizes(config: Config) -> Sizes:
    """Common sizes of a model whose head sizes are those of latent attention."""
    heads = config.size("num_attention_heads")
    return Sizes(
        hidden=config.size("hidden_size"),
        vocab=config.size("vocab_size"),
        layers=read_layers(config),
        heads=heads,
        kv_heads=heads,
        head_dim=0,
        positions=config.optional_size("max_position_embeddings", "model_max_length"),
        tied=config.flag("tie_word_embeddings", default=False),
    )


def read_experts(config: Config) -> Experts:
    """Routed and shared experts in DeepSeek's spelling."""
    ffn = config.size("moe_intermediate_size")
    shared = config.size("n_shared_experts", "num_shared_experts", default=0, least=0)
    return Experts(
        experts=config.size("n_routed_experts", "num_experts"),
        top_k=config.size("num_experts_per_tok", "num_experts_per_token"),
        ffn=ffn,
        shared_ffn=shared * ffn,
        function=config.word("hidden_act", default="silu"),
    )


def read_sparse(config: Config, layers: int) -> tuple[bool, ...]:
    """Layers with experts: all but the first few, every ``moe_layer_freq``-th."""
    first = config.size("first_k_dense_replace", default=0, least=0)
    step = config.size("moe_layer_freq", default=1)
    return tuple(index >= first and index % step == 0 for index in range(layers))


def latent_moe_model(config: Config, family: str) -> ModelGraph:
    """Reads the whole model."""
    sizes = read_latent_sizes(config)
    attention = read_latent_attention(config, sizes.heads)
    experts = read_experts(config)
    is_sparse = read_sparse(config, sizes.layers)
    ffn = 1 if all(is_sparse) else config.size("intermediate_size")
    mtp = read_mtp_depth(config)
    config.check()
    sparse = Layer(hidden=sizes.hidden, attention=attention, feed=experts)
    dense = replace(sparse, feed=Mlp(ffn=ffn, function=experts.function))
    parts = LatentMoe(sizes=sizes, dense=dense, sparse=sparse, is_sparse=is_sparse, mtp=mtp)
    return latent_moe_graph(config, family, parts)


def latent_moe_graph(config: Config, family: str, parts: LatentMoe) -> ModelGraph:
    """The graph of a model that has been read."""
    sizes = parts.sizes
    dense, sparse = layer_block("dense", parts.dense), layer_block("moe", parts.sparse)
    mtp = mtp_blocks(sizes, parts.sparse, parts.mtp)
    ties = mtp_ties((block.name for block in mtp), tied_head=sizes.tied)
    return Stack(
        prologue=(embedding_block(sizes.hidden, sizes.vocab),),
        layers=[sparse if is_sparse else dense for is_sparse in parts.is_sparse],
        epilogue=(head_block(sizes.hidden, sizes.vocab),),
        ties=((TIED_HEAD,) if sizes.tied else ()) + ties,
        mtp=mtp,
        max_sequence_length=sizes.positions,
    ).graph(config, family)


def mtp_blocks(sizes: Sizes, layer: Layer, depth: int) -> tuple[Block, ...]:
    """Multi-token-prediction blocks: join, one layer, norm, shared head."""
    blocks: list[Block] = []
    for index in range(depth):
        b = BlockBuilder(f"mtp_{index}", {"hidden": sizes.hidden, "vocab": sizes.vocab})
        blocks.append(mtp_output(b, run_layer(b, mtp_input(b), layer)))
    return tuple(blocks)
