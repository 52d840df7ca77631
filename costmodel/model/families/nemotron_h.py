"""Nemotron-H and Nemotron 3: Mamba-2, attention, MLP and expert layers in a pattern
(arXiv 2504.03624). Each layer is one part with one norm.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from costmodel.model.builder import RMS, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Attention, Experts, Mlp, attention, mlp, moe
from costmodel.model.recurrent import Mamba2, mamba2
from costmodel.model.stack import (
    TIED_HEAD,
    Stack,
    embedding_block,
    head_block,
    mtp_input,
    mtp_output,
    mtp_ties,
)
from costmodel.model.standard import (
    Sizes,
    grouped,
    read_head_dim,
    read_mtp_depth,
    read_sizes,
)

_NAMES = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """The part of each kind of layer; None where the pattern does not use it."""

    mamba: Mamba2 | None
    attention: Attention | None
    mlp: Mlp | None
    moe: Experts | None


def build(config: Config) -> ModelGraph:
    """The pattern has one letter a layer: M mamba, * attention, - MLP, E experts."""
    sizes = replace(read_sizes(config))
    pattern = _pattern(config, "hybrid_override_pattern", sizes.layers)
    depth = read_mtp_depth(config)
    mtp_pattern = _pattern(config, "mtp_hybrid_override_pattern", None) if depth else ""
    kinds = _read_kinds(config, sizes, set(pattern + mtp_pattern))
    config.check()
    blocks = {letter: _block(letter, sizes.hidden, kinds) for letter in dict.fromkeys(pattern)}
    mtp = [_mtp_block(index, sizes, mtp_pattern, kinds) for index in range(depth)]
    ties = mtp_ties((block.name for block in mtp), tied_head=sizes.tied)
    return Stack(
        prologue=(embedding_block(sizes.hidden, sizes.vocab),),
        layers=[blocks[letter] for letter in pattern],
        epilogue=(head_block(sizes.hidden, sizes.vocab),),
        ties=((TIED_HEAD,) if sizes.tied else ()) + ties,
        mtp=mtp,
        max_sequence_length=sizes.positions,
    ).graph(config, "nemotron_h")


def _pattern(config: Config, key: str, layers: int | None) -> str:
    pattern = config.word(key, default="")
    if not pattern:
        config.refuse(key, "is needed", "add one of M * - E for each layer")
    elif set(pattern) - set(_NAMES):
        config.refuse(key, "must consist of M, *, - and E", "correct the pattern")
    elif layers is not None and len(pattern) != layers:
        config.refuse(key, f"must have {layers} letters", "make it as long as num_hidden_layers")
    else:
        return pattern
    return "-"


def _read_kinds(config: Config, sizes: Sizes, letters: set[str]) -> Kinds:
    function = config.word("mlp_hidden_act", default="relu2")
    bias = config.flag("mlp_bias", default=False)
    attends = None
    if "*" in letters:
        head_dim = config.optional_size("attention_head_dim") or read_head_dim(
            config, sizes.hidden, sizes.heads
        )
        attends = replace(grouped(config, replace(sizes, head_dim=head_dim)), rotary=None)
    mlp_part = None
    if "-" in letters:
        ffn = config.size("intermediate_size")
        mlp_part = Mlp(ffn=ffn, gated=False, function=function, bias=bias)
    return Kinds(
        mamba=_read_mamba(config) if "M" in letters else None,
        attention=attends,
        mlp=mlp_part,
        moe=_read_moe(config, function) if "E" in letters else None,
    )


def _read_mamba(config: Config) -> Mamba2:
    return Mamba2(
        heads=config.size("mamba_num_heads"),
        head_dim=config.size("mamba_head_dim"),
        groups=config.size("n_groups"),
        state=config.size("ssm_state_size"),
        kernel=config.size("conv_kernel", default=4),
        chunk=config.size("chunk_size", default=128),
        bias=config.flag("mamba_proj_bias", default=False),
        conv_bias=config.flag("use_conv_bias", default=True),
    )


def _read_moe(config: Config, function: str) -> Experts:
    shared = config.size("n_shared_experts", default=0, least=0)
    return Experts(
        experts=config.size("n_routed_experts"),
        top_k=config.size("num_experts_per_tok"),
        ffn=config.size("moe_intermediate_size"),
        shared_ffn=shared * config.size("moe_shared_expert_intermediate_size") if shared else 0,
        function=function,
        gated=False,
        latent=config.optional_size("moe_latent_size") or 0,
    )


def _run(b: BlockBuilder, x: str, letter: str, kinds: Kinds) -> str:
    runs: dict[str, Callable[[str], str]] = {}
    if kinds.mamba is not None:
        runs["M"] = lambda y, part=kinds.mamba: mamba2(b, y, part)
    if kinds.attention is not None:
        runs["*"] = lambda y, part=kinds.attention: attention(b, y, part)
    if kinds.mlp is not None:
        runs["-"] = lambda y, part=kinds.mlp: mlp(b, y, part)
    if kinds.moe is not None:
        runs["E"] = lambda y, part=kinds.moe: moe(b, y, part)
    name = _NAMES[letter]
    y = runs[letter](b.norm(f"{name}_norm", x, RMS))
    return b.add(f"{name}_residual", x, y)


def _block(letter: str, hidden: int, kinds: Kinds) -> Block:
    b = BlockBuilder(_NAMES[letter], {"hidden": hidden})
    return b.build(_run(b, "x", letter, kinds))


def _mtp_block(index: int, sizes: Sizes, pattern: str, kinds: Kinds) -> Block:
    b = BlockBuilder(f"mtp_{index}", {"hidden": sizes.hidden, "vocab": sizes.vocab})
    x = mtp_input(b)
    for letter in pattern:
        x = _run(b, x, letter, kinds)
    return mtp_output(b, x)


FAMILY = Family(name="nemotron_h", model_types=("nemotron_h",), build=build)
