"""Kimi Linear: delta attention with latent attention in between (arXiv 2510.26692)."""

from dataclasses import dataclass, replace

from costmodel.model.builder import RMS, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block, run_layer
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.latent_moe import read_experts, read_latent_sizes
from costmodel.model.parts import LatentAttention, Mlp
from costmodel.model.recurrent import DeltaNet, delta_net
from costmodel.model.standard import decoder_model


@dataclass(frozen=True, slots=True)
class Kind:
    """What one layer has: full attention or delta attention, experts or a dense MLP."""

    full: bool
    sparse: bool


def build(config: Config) -> ModelGraph:
    """Latent attention has no rotary positions; queries are projected directly by default."""
    sizes = read_latent_sizes(config)
    attention = LatentAttention(
        heads=sizes.heads,
        q_rank=config.optional_size("q_lora_rank"),
        kv_rank=config.size("kv_lora_rank"),
        nope_dim=config.size("qk_nope_head_dim"),
        rope_dim=config.size("qk_rope_head_dim"),
        v_dim=config.size("v_head_dim"),
        rotary=False,
    )
    delta = _read_delta(config)
    experts = read_experts(config)
    ffn = config.size("intermediate_size")
    kinds = _read_kinds(config, sizes.layers)
    config.check()
    sparse = Layer(hidden=sizes.hidden, attention=attention, feed=experts)
    dense = replace(sparse, feed=Mlp(ffn=ffn, function=experts.function))
    blocks = {
        kind: _block(kind, sparse if kind.sparse else dense, delta) for kind in dict.fromkeys(kinds)
    }
    return decoder_model(config, "kimi_linear", sizes, [blocks[kind] for kind in kinds])


def _read_delta(config: Config) -> DeltaNet:
    nested = config.sub("linear_attn_config")
    source, prefix = (nested, "") if nested.document else (config, "linear_")
    heads = source.size(f"{prefix}num_heads")
    dim = source.size(f"{prefix}head_dim")
    kernel = source.size("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    return DeltaNet(
        key_heads=heads,
        value_heads=heads,
        key_dim=dim,
        value_dim=dim,
        kernel=kernel,
        decay_rank=dim,
    )


def _read_kinds(config: Config, layers: int) -> list[Kind]:
    """Full layers are listed from 1 in the checkpoint's config, else every fourth but the first."""
    listed = config.sub("linear_attn_config").items("full_attn_layers")
    types = config.per_layer("layer_types", layers)
    full = [index > 0 and index % 4 == 0 for index in range(layers)]
    if types is not None:
        full = [kind == "full_attention" for kind in types]
    elif listed is not None:
        full = [index + 1 in listed for index in range(layers)]
    first = config.size("first_k_dense_replace", default=1, least=0)
    feeds = config.per_layer("mlp_layer_types", layers)
    sparse = [index >= first for index in range(layers)]
    if feeds is not None:
        sparse = [feed == "sparse" for feed in feeds]
    return [Kind(*kind) for kind in zip(full, sparse, strict=True)]


def _block(kind: Kind, layer: Layer, delta: DeltaNet) -> Block:
    feed = "moe" if kind.sparse else "dense"
    if kind.full:
        return layer_block(f"attention_{feed}", layer)
    b = BlockBuilder(f"delta_{feed}", {"hidden": layer.hidden})
    x = b.add("delta_residual", "x", delta_net(b, b.norm("delta_norm", "x", RMS), delta))
    return b.build(run_layer(b, x, replace(layer, attention=None)))


FAMILY = Family(name="kimi_linear", model_types=("kimi_linear",), build=build)
