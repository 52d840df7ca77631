"""Keys that most decoder-only configs share, and the model they describe.

Names and defaults are those of the configuration classes of Hugging Face transformers
(https://huggingface.co/docs/transformers).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from costmodel.model.builder import RMS, Norm
from costmodel.model.config import MAX_MTP, Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Attention, Mlp
from costmodel.model.stack import TIED_HEAD, Stack, embedding_block, head_block


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of a decoder: hidden width, vocabulary, layers, heads."""

    hidden: int
    vocab: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    positions: int | None
    tied: bool


def read_sizes(config: Config, *, tied: bool = False) -> Sizes:
    """The common keys. An explicit head_dim wins; kv heads missing or null are the heads."""
    hidden = config.size("hidden_size", "n_embd", "d_model")
    heads = config.size("num_attention_heads", "n_head", "n_heads")
    return Sizes(
        hidden=hidden,
        vocab=config.size("vocab_size"),
        layers=read_layers(config),
        heads=heads,
        kv_heads=config.size("num_key_value_heads", default=heads),
        head_dim=read_head_dim(config, hidden, heads),
        positions=config.optional_size("max_position_embeddings", "n_positions", "seq_length"),
        tied=config.flag("tie_word_embeddings", default=tied),
    )


def read_mtp_depth(config: Config) -> int:
    """Multi-token prediction blocks, in DeepSeek's spelling."""
    return config.size("num_nextn_predict_layers", default=0, least=0, most=MAX_MTP)


def read_layers(config: Config, *keys: str) -> int:
    """Number of layers, at most 4,096."""
    names = keys or ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    layers = config.size(*names)
    if layers > 4096:
        config.refuse(names[0], "must be at most 4096", "correct the number of layers")
        return 1
    return layers


def read_head_dim(config: Config, hidden: int, heads: int) -> int:
    """Explicit head_dim, where 0 and negative mean absent, else hidden / heads."""
    explicit = config.optional_size("head_dim")
    if explicit is not None:
        return explicit
    if config.sound("num_attention_heads", "n_head", "n_heads") and hidden % heads:
        fix = "correct num_attention_heads or give head_dim"
        config.refuse("hidden_size", f"must be a multiple of the {heads} heads", fix)
    return max(1, hidden // heads)


def grouped(config: Config, sizes: Sizes) -> Attention:
    """Grouped-query attention of these sizes; families ``replace`` what differs."""
    if config.sound("num_attention_heads") and sizes.heads % sizes.kv_heads:
        fix = f"use a divisor of {sizes.heads}"
        config.refuse("num_key_value_heads", "must divide the number of heads", fix)
    return Attention(
        heads=sizes.heads, kv_heads=sizes.kv_heads, qk_dim=sizes.head_dim, v_dim=sizes.head_dim
    )


def decoder_stack(
    sizes: Sizes, layers: Sequence[Block], *, norm: Norm = RMS, head_bias: bool = False
) -> Stack:
    """Embedding, these layers, final norm and head."""
    return Stack(
        prologue=(embedding_block(sizes.hidden, sizes.vocab),),
        layers=layers,
        epilogue=(head_block(sizes.hidden, sizes.vocab, norm, bias=head_bias),),
        ties=(TIED_HEAD,) if sizes.tied else (),
        max_sequence_length=sizes.positions,
    )


def decoder_model(config: Config, family: str, sizes: Sizes, layers: Sequence[Block]) -> ModelGraph:
    """A decoder of these layers with an RMS norm before its head."""
    return decoder_stack(sizes, layers).graph(config, family)


def sparse_layers(config: Config, layers: int) -> list[bool]:
    """Qwen's rule for which layers have experts: every n-th, unless listed as dense."""
    step = config.size("decoder_sparse_step", default=1)
    dense = config.items("mlp_only_layers") or []
    return [index not in dense and (index + 1) % step == 0 for index in range(layers)]


def uniform_model(
    config: Config, family: str, sizes: Sizes, layer: Layer, *, head_bias: bool = False
) -> ModelGraph:
    """A decoder whose layers are all alike; its final norm is of the layers' kind."""
    blocks = [layer_block("layer", layer)] * sizes.layers
    stack = decoder_stack(sizes, blocks, norm=layer.norm, head_bias=head_bias)
    return stack.graph(config, family)


def gated(config: Config, *, bias: bool = False, function: str = "silu") -> Mlp:
    """SwiGLU of the usual keys."""
    return Mlp(
        ffn=config.size("intermediate_size", "ffn_hidden_size"),
        function=config.word("hidden_act", "hidden_activation", default=function),
        bias=bias,
    )


def rotary_size(config: Config, head_dim: int, default: float) -> int:
    """Elements of each head that are rotated: a fraction of it, 0 for all."""
    fraction = config.number("partial_rotary_factor", "rotary_pct", default=default, most=1.0)
    return 0 if fraction == 1.0 else int(head_dim * fraction)


def is_sliding(config: Config, layers: int, full_every: int) -> list[bool]:
    """Which layers have a sliding window: ``layer_types``, else all but every n-th."""
    types = config.per_layer("layer_types", layers)
    if types is not None:
        return [kind == "sliding_attention" for kind in types]
    return [bool((index + 1) % full_every) for index in range(layers)]


def positioned_model(
    config: Config, family: str, sizes: Sizes, layer: Layer, positions: int
) -> ModelGraph:
    """A decoder of equal layers with a table of learned positions."""
    return Stack(
        prologue=(embedding_block(sizes.hidden, sizes.vocab, positions=positions),),
        layers=[layer_block("layer", layer)] * sizes.layers,
        epilogue=(head_block(sizes.hidden, sizes.vocab, layer.norm),),
        ties=(TIED_HEAD,) if sizes.tied else (),
        max_sequence_length=sizes.positions or positions,
    ).graph(config, family)


def stateless_sizes(config: Config, *, tied: bool) -> Sizes:
    """Sizes of a model without attention."""
    return Sizes(
        hidden=config.size("hidden_size"),
        vocab=config.size("vocab_size"),
        layers=read_layers(config),
        heads=1,
        kv_heads=1,
        head_dim=1,
        positions=None,
        tied=config.flag("tie_word_embeddings", default=tied),
    )
