"""Mamba-2: a stack of structured state spaces, no attention (arXiv 2405.21060)."""

from costmodel.model.builder import RMS, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.recurrent import Mamba2, mamba2
from costmodel.model.standard import decoder_model, stateless_sizes


def build(config: Config) -> ModelGraph:
    """One norm and one mixer a layer."""
    sizes = stateless_sizes(config, tied=False)
    mixer = Mamba2(
        heads=config.size("num_heads"),
        head_dim=config.size("head_dim"),
        groups=config.size("n_groups"),
        state=config.size("state_size"),
        kernel=config.size("conv_kernel", default=4),
        chunk=config.size("chunk_size", default=256),
        bias=config.flag("use_bias", default=False),
        conv_bias=config.flag("use_conv_bias", default=True),
    )
    config.check()
    b = BlockBuilder("layer", {"hidden": sizes.hidden})
    layer = b.build(b.add("residual", "x", mamba2(b, b.norm("norm", "x", RMS), mixer)))
    return decoder_model(config, "mamba2", sizes, [layer] * sizes.layers)


FAMILY = Family(name="mamba2", model_types=("mamba2",), build=build)
