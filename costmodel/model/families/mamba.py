"""Mamba: a stack of selective state spaces, no attention (arXiv 2312.00752)."""

from costmodel.model.builder import RMS, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.recurrent import Mamba, mamba
from costmodel.model.standard import decoder_model, stateless_sizes


def build(config: Config) -> ModelGraph:
    """One norm and one mixer a layer; ``time_step_rank`` defaults to hidden / 16 rounded up."""
    sizes = stateless_sizes(config, tied=True)
    expand = config.size("expand", default=2)
    rank = config.raw("time_step_rank")
    mixer = Mamba(
        inner=config.size("intermediate_size", default=expand * sizes.hidden),
        state=config.size("state_size"),
        kernel=config.size("conv_kernel", default=4),
        rank=-(-sizes.hidden // 16) if rank in (None, "auto") else config.size("time_step_rank"),
        bias=config.flag("use_bias", default=False),
        conv_bias=config.flag("use_conv_bias", default=True),
    )
    config.check()
    b = BlockBuilder("layer", {"hidden": sizes.hidden})
    layer = b.build(b.add("residual", "x", mamba(b, b.norm("norm", "x", RMS), mixer)))
    return decoder_model(config, "mamba", sizes, [layer] * sizes.layers)


FAMILY = Family(name="mamba", model_types=("mamba",), build=build)
