"""Jamba: Mamba layers with an attention layer in eight and experts in two (arXiv 2403.19887)."""

from dataclasses import replace

from costmodel.model.builder import RMS, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block, run_layer
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Experts
from costmodel.model.recurrent import Mamba, mamba
from costmodel.model.standard import decoder_model, gated, grouped, read_sizes


def build(config: Config) -> ModelGraph:
    """Periods and offsets say which layers attend and which have experts; no positions."""
    sizes = read_sizes(config)
    attention = replace(grouped(config, sizes), rotary=None)
    dense = gated(config)
    experts = Experts(
        experts=config.size("num_experts"),
        top_k=config.size("num_experts_per_tok"),
        ffn=dense.ffn,
        function=dense.function,
    )
    mixer = _read_mixer(config, sizes.hidden)
    attends = _periodic(config, "attn_layer", sizes.layers, period=8, offset=4)
    sparse = _periodic(config, "expert_layer", sizes.layers, period=2, offset=1)
    config.check()
    halves = {True: Layer(hidden=sizes.hidden, attention=attention, feed=experts)}
    halves[False] = replace(halves[True], feed=dense)
    blocks = {
        (attend, has): _block(halves[has], attend=attend, mixer=mixer, sparse=has)
        for attend, has in dict.fromkeys(zip(attends, sparse, strict=True))
    }
    layers = [blocks[kind] for kind in zip(attends, sparse, strict=True)]
    return decoder_model(config, "jamba", sizes, layers)


def _read_mixer(config: Config, hidden: int) -> Mamba:
    rank = config.raw("mamba_dt_rank")
    return Mamba(
        inner=config.size("mamba_expand", default=2) * hidden,
        state=config.size("mamba_d_state", default=16),
        kernel=config.size("mamba_d_conv", default=4),
        rank=-(-hidden // 16) if rank in (None, "auto") else config.size("mamba_dt_rank"),
        bias=config.flag("mamba_proj_bias", default=False),
        conv_bias=config.flag("mamba_conv_bias", default=True),
        inner_norms=True,
    )


def _periodic(config: Config, name: str, layers: int, *, period: int, offset: int) -> list[bool]:
    every = config.size(f"{name}_period", default=period)
    start = config.size(f"{name}_offset", default=offset, least=0)
    return [index % every == start for index in range(layers)]


def _block(layer: Layer, *, attend: bool, mixer: Mamba, sparse: bool) -> Block:
    feed = "moe" if sparse else "dense"
    if attend:
        return layer_block(f"attention_{feed}", layer)
    b = BlockBuilder(f"mamba_{feed}", {"hidden": layer.hidden})
    x = b.add("mamba_residual", "x", mamba(b, b.norm("mamba_norm", "x", RMS), mixer))
    return b.build(run_layer(b, x, replace(layer, attention=None)))


FAMILY = Family(name="jamba", model_types=("jamba",), build=build)
