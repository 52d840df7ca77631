"""T5 and Flan-T5: encoder and decoder with relative position biases (arXiv 1910.10683)."""

from dataclasses import replace

from costmodel.model.builder import RMS
from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Attention, Mlp
from costmodel.model.seq2seq import (
    DECODER_TIE,
    ENCODER,
    Seq2Seq,
    Side,
    TokenInput,
    norm_block,
    seq2seq_stack,
    side_block,
    token_block,
)
from costmodel.model.stack import TIED_HEAD, head_block
from costmodel.model.standard import read_layers

_TIED_ANYWAY = "head: tied to the embedding, as in the class that the count was taken from"
_EQUAL_LENGTHS = "encoder and decoder sequences have the same number of tokens"


def build(config: Config) -> ModelGraph:
    """The first layer of each side holds the biases that all its layers use."""
    hidden = config.size("d_model")
    vocab = config.size("vocab_size")
    side = _read_side(config, hidden)
    buckets = config.size("relative_attention_num_buckets", default=32)
    encoder_layers = read_layers(config, "num_layers")
    decoder_layers = encoder_layers
    if config.has("num_decoder_layers"):
        decoder_layers = read_layers(config, "num_decoder_layers")
    tied = config.flag("tie_word_embeddings", default=True)
    config.check()
    parts = Seq2Seq(
        source=token_block(hidden, vocab, TokenInput(name="embedding", stream=ENCODER)),
        encoder=_side(ENCODER, side, buckets, encoder_layers),
        between=(
            norm_block("encoder_norm", hidden, RMS),
            token_block(hidden, vocab, TokenInput(name="decoder_embedding", stream="main")),
        ),
        decoder=_side("decoder", side, buckets, decoder_layers),
        head=head_block(hidden, vocab),
        ties=(DECODER_TIE, TIED_HEAD),
        max_sequence_length=config.optional_size("n_positions"),
        assumptions=(_EQUAL_LENGTHS,) if tied else (_EQUAL_LENGTHS, _TIED_ANYWAY),
    )
    return seq2seq_stack(parts).graph(config, "t5")


def _read_side(config: Config, hidden: int) -> Side:
    heads, dim = config.size("num_heads"), config.size("d_kv")
    function = config.word("feed_forward_proj", default="relu")
    attention = Attention(heads=heads, kv_heads=heads, qk_dim=dim, v_dim=dim, rotary=None)
    gated = function.startswith("gated-")
    feed = Mlp(ffn=config.size("d_ff"), gated=gated, function=function.removeprefix("gated-"))
    return Side(hidden=hidden, attention=attention, feed=feed, norm=RMS)


def _side(name: str, side: Side, buckets: int, layers: int) -> list[Block]:
    decoder = name == "decoder"
    biased = replace(side, attention=replace(side.attention, buckets=buckets))
    first = side_block(f"{name}_first", biased, decoder=decoder)
    return [first, *[side_block(f"{name}_layer", side, decoder=decoder)] * (layers - 1)]


FAMILY = Family(name="t5", model_types=("t5",), build=build)
