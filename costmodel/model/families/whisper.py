"""Whisper: an audio encoder of 1,500 frames and a text decoder (arXiv 2212.04356)."""

from costmodel.model.builder import LAYER, STREAM, BlockBuilder
from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph, Tie
from costmodel.model.parts import Attention, Mlp
from costmodel.model.seq2seq import (
    ENCODER,
    Seq2Seq,
    Side,
    TokenInput,
    norm_block,
    seq2seq_stack,
    side_block,
    token_block,
)
from costmodel.model.stack import head_block, learned_positions
from costmodel.model.standard import read_layers

_TIED = Tie(owner="decoder_embedding.embedding.table", copy="head.head.weight")


def build(config: Config) -> ModelGraph:
    """Keys have no bias; the encoder sees ``max_source_positions`` frames whatever the text."""
    hidden, vocab = config.size("d_model"), config.size("vocab_size")
    frames = config.size("max_source_positions", default=1500)
    positions = config.size("max_target_positions", default=448)
    mels = config.size("num_mel_bins")
    encoder, decoder = (_read_side(config, name, hidden) for name in (ENCODER, "decoder"))
    encoder_layers = read_layers(config, "encoder_layers")
    decoder_layers = read_layers(config, "decoder_layers")
    tied = config.flag("tie_word_embeddings", default=True)
    config.check()
    text = TokenInput(name="decoder_embedding", stream="main", positions=positions)
    parts = Seq2Seq(
        source=_audio_block(hidden, mels, frames),
        encoder=[side_block("encoder_layer", encoder, decoder=False)] * encoder_layers,
        between=(
            norm_block("encoder_norm", hidden, LAYER),
            token_block(hidden, vocab, text),
        ),
        decoder=[side_block("decoder_layer", decoder, decoder=True)] * decoder_layers,
        head=head_block(hidden, vocab, LAYER),
        ties=(_TIED,) if tied else (),
        max_sequence_length=positions,
        encoder_tokens=frames,
    )
    return seq2seq_stack(parts).graph(config, "whisper")


def _read_side(config: Config, name: str, hidden: int) -> Side:
    heads = config.size(f"{name}_attention_heads")
    dim = max(1, hidden // heads)
    attention = Attention(
        heads=heads,
        kv_heads=heads,
        qk_dim=dim,
        v_dim=dim,
        qkv_bias=True,
        k_bias=False,
        out_bias=True,
        rotary=None,
    )
    feed = Mlp(
        ffn=config.size(f"{name}_ffn_dim"),
        gated=False,
        function=config.word("activation_function", default="gelu"),
        bias=True,
    )
    return Side(hidden=hidden, attention=attention, feed=feed, norm=LAYER)


def _audio_block(hidden: int, mels: int, frames: int) -> Block:
    """Two convolutions of width 3, the second of stride 2, then fixed positions."""
    dims = {"hidden": hidden, "mels": mels, "kernel": 3, "first": hidden}
    inputs = {"features": ("mels",)}
    b = BlockBuilder("audio", dims, inputs=inputs, stream=ENCODER)
    weights = {"weight": ("first", "kernel", "mels"), "bias": ("first",)}
    x = b.op(
        "conv", "conv1", ("features",), ("first",), weights=weights, kernel=3, outputs_per_token=2
    )
    x = b.activation("act1", (x,), "gelu", STREAM)
    weights = {"weight": ("hidden", "kernel", "first"), "bias": ("hidden",)}
    x = b.op("conv", "conv2", (x,), ("hidden",), weights=weights, kernel=3, stride=2)
    x = b.activation("act2", (x,), "gelu", STREAM)
    return b.build(learned_positions(b, x, frames))


FAMILY = Family(name="whisper", model_types=("whisper",), build=build)
