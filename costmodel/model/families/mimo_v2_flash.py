"""MiMo-V2-Flash: windows of 128 with sinks, a full layer in six, experts (arXiv 2601.02780)."""

from dataclasses import replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.latent_moe import read_experts
from costmodel.model.parts import Attention, Mlp
from costmodel.model.standard import decoder_model, read_sizes, rotary_size


def build(config: Config) -> ModelGraph:
    """``hybrid_layer_pattern`` marks window layers, ``moe_layer_freq`` layers with experts."""
    sizes = read_sizes(config)
    full = _read_attention(config, "", sinks="add_full_attention_sink_bias")
    near = replace(
        _read_attention(config, "swa_", sinks="add_swa_attention_sink_bias"),
        window=config.size("sliding_window"),
    )
    experts = read_experts(config)
    ffn = config.size("intermediate_size")
    windows = _marks(config, "hybrid_layer_pattern", sizes.layers)
    sparse = _marks(config, "moe_layer_freq", sizes.layers)
    config.check()
    kinds = list(zip(windows, sparse, strict=True))
    blocks: dict[tuple[bool, bool], Block] = {}
    for window, has in dict.fromkeys(kinds):
        feed = experts if has else Mlp(ffn=ffn, function=experts.function)
        layer = Layer(hidden=sizes.hidden, attention=near if window else full, feed=feed)
        name = f"{'window' if window else 'full'}_{'moe' if has else 'dense'}"
        blocks[window, has] = layer_block(name, layer)
    return decoder_model(config, "mimo_v2_flash", sizes, [blocks[kind] for kind in kinds])


def _read_attention(config: Config, prefix: str, *, sinks: str) -> Attention:
    """Window layers have their own head counts; where not given they are those of full layers."""
    qk_dim = config.size(f"{prefix}head_dim", "head_dim")
    bias = config.flag("attention_bias", default=False)
    return Attention(
        heads=config.size(f"{prefix}num_attention_heads", "num_attention_heads"),
        kv_heads=config.size(f"{prefix}num_key_value_heads", "num_key_value_heads"),
        qk_dim=qk_dim,
        v_dim=config.size(f"{prefix}v_head_dim", "v_head_dim"),
        qkv_bias=bias,
        rotary=rotary_size(config, qk_dim, default=1.0),
        sinks=config.flag(sinks, default=bool(prefix)),
    )


def _marks(config: Config, key: str, layers: int) -> list[bool]:
    marks = config.per_layer(key, layers)
    if marks is None:
        config.refuse(key, "is needed", "add a list of 0 and 1, one entry a layer")
    return [bool(mark) for mark in marks or [0] * layers]


FAMILY = Family(name="mimo_v2_flash", model_types=("mimo_v2_flash",), build=build)
