"""BART: encoder and decoder with learned positions and norms after each part (arXiv 1910.13461)."""

from costmodel.model.builder import LAYER
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
    seq2seq_stack,
    side_block,
    token_block,
)
from costmodel.model.stack import TIED_HEAD, head_block
from costmodel.model.standard import read_layers


def build(config: Config) -> ModelGraph:
    """The tables of positions have two more rows than there are positions."""
    hidden, vocab = config.size("d_model"), config.size("vocab_size")
    positions = config.size("max_position_embeddings")
    encoder, decoder = (_read_side(config, name, hidden) for name in (ENCODER, "decoder"))
    encoder_layers = read_layers(config, "encoder_layers")
    decoder_layers = read_layers(config, "decoder_layers")
    tied = config.flag("tie_word_embeddings", default=True)
    config.check()

    def tokens(name: str, stream: str) -> Block:
        table = positions + 2
        return token_block(
            hidden, vocab, TokenInput(name=name, stream=stream, positions=table, norm=LAYER)
        )

    parts = Seq2Seq(
        source=tokens("embedding", ENCODER),
        encoder=[side_block("encoder_layer", encoder, decoder=False)] * encoder_layers,
        between=(tokens("decoder_embedding", "main"),),
        decoder=[side_block("decoder_layer", decoder, decoder=True)] * decoder_layers,
        head=head_block(hidden, vocab, None),
        ties=(DECODER_TIE, TIED_HEAD) if tied else (DECODER_TIE,),
        max_sequence_length=positions,
        assumptions=("encoder and decoder sequences have the same number of tokens",),
    )
    return seq2seq_stack(parts).graph(config, "bart")


def _read_side(config: Config, name: str, hidden: int) -> Side:
    heads = config.size(f"{name}_attention_heads")
    dim = max(1, hidden // heads)
    attention = Attention(
        heads=heads,
        kv_heads=heads,
        qk_dim=dim,
        v_dim=dim,
        qkv_bias=True,
        out_bias=True,
        rotary=None,
    )
    feed = Mlp(
        ffn=config.size(f"{name}_ffn_dim"),
        gated=False,
        function=config.word("activation_function", default="gelu"),
        bias=True,
    )
    return Side(hidden=hidden, attention=attention, feed=feed, norm=LAYER, post=True)


FAMILY = Family(name="bart", model_types=("bart",), build=build)
