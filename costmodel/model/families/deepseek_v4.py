"""DeepSeek-V4: hyper-connections, compressed attention, experts in every layer."""

from dataclasses import dataclass, replace

from costmodel.model.builder import RMS, BlockBuilder
from costmodel.model.compressed import Compressed, compressed_attention
from costmodel.model.config import Config
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.hyper import STREAMS, collapse, collapse_last, expand, join_token, replicate
from costmodel.model.latent_moe import read_experts
from costmodel.model.parts import Experts, moe
from costmodel.model.stack import TIED_HEAD, Stack, embed, head, mtp_ties
from costmodel.model.standard import read_layers, read_mtp_depth

_NAMES = {0: "window", 4: "compressed_4", 128: "compressed_128"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that the blocks are built from."""

    hidden: int
    vocab: int
    streams: int
    attention: Compressed
    experts: Experts

    def start(self, name: str, *, from_tokens: bool = False) -> BlockBuilder:
        """An empty block on the parallel streams."""
        inputs = {} if from_tokens else {"x": STREAMS}
        dims = {"hidden": self.hidden, "streams": self.streams, "vocab": self.vocab}
        return BlockBuilder(name, dims, inputs=inputs)


def build(config: Config) -> ModelGraph:
    """``compress_ratios`` has one entry a layer (0, 4 or 128), then those of prediction layers."""
    layers = read_layers(config)
    depth = read_mtp_depth(config)
    ratios = _read_ratios(config, layers, depth)
    parts = _read_parts(config)
    tied = config.flag("tie_word_embeddings", default=False)
    config.check()
    blocks = {ratio: _layer_block(parts, ratio) for ratio in dict.fromkeys(ratios[:layers])}
    mtp = [_mtp_block(parts, index, ratio) for index, ratio in enumerate(ratios[layers:])]
    ties = mtp_ties((block.name for block in mtp), tied_head=tied)
    return Stack(
        prologue=(_embedding_block(parts),),
        layers=[blocks[ratio] for ratio in ratios[:layers]],
        epilogue=(_head_block(parts),),
        ties=((TIED_HEAD,) if tied else ()) + ties,
        mtp=mtp,
        max_sequence_length=config.optional_size("max_position_embeddings"),
    ).graph(config, "deepseek_v4")


def _read_ratios(config: Config, layers: int, depth: int) -> list[int]:
    ratios = config.items("compress_ratios")
    if ratios is None or len(ratios) < layers:
        config.refuse("compress_ratios", f"must have {layers} entries", "add one for each layer")
        return [0] * (layers + depth)
    if not all(isinstance(ratio, int) and ratio in _NAMES for ratio in ratios):
        config.refuse("compress_ratios", "must hold 0, 4 and 128", "correct the ratios")
        return [0] * (layers + depth)
    return [*ratios[:layers], *(ratios[layers:] + [0] * depth)[:depth]]


def _read_parts(config: Config) -> Parts:
    heads, dim = config.size("num_attention_heads"), config.size("head_dim")
    attention = Compressed(
        heads=heads,
        dim=dim,
        rope_dim=config.size("qk_rope_head_dim", default=64),
        q_rank=config.size("q_lora_rank"),
        groups=config.size("o_groups"),
        o_rank=config.size("o_lora_rank"),
        window=config.size("sliding_window"),
        ratio=0,
        index_heads=config.size("index_n_heads"),
        index_dim=config.size("index_head_dim"),
        index_keys=config.size("index_topk"),
    )
    if heads % attention.groups:
        config.refuse("o_groups", "must divide num_attention_heads", "correct the groups")
    return Parts(
        hidden=config.size("hidden_size"),
        vocab=config.size("vocab_size"),
        streams=config.size("hc_mult"),
        attention=attention,
        experts=read_experts(config),
    )


def _run_layer(b: BlockBuilder, x: str, parts: Parts, ratio: int) -> str:
    mix, y = collapse(b, "attention", x)
    y = b.norm("attention_norm", y, RMS)
    y = compressed_attention(b, y, replace(parts.attention, ratio=ratio))
    x = expand(b, "attention", x, y, mix)
    mix, y = collapse(b, "mlp", x)
    return expand(b, "mlp", x, moe(b, b.norm("mlp_norm", y, RMS), parts.experts), mix)


def _layer_block(parts: Parts, ratio: int) -> Block:
    b = parts.start(_NAMES[ratio])
    return b.build(_run_layer(b, "x", parts, ratio))


def _embedding_block(parts: Parts) -> Block:
    b = parts.start("embedding", from_tokens=True)
    return b.build(replicate(b, embed(b)))


def _head_block(parts: Parts) -> Block:
    b = parts.start("head")
    head(b, b.norm("norm", collapse_last(b, "x"), RMS))
    return b.build("")


def _mtp_block(parts: Parts, index: int, ratio: int) -> Block:
    b = parts.start(f"mtp_{index}")
    x = _run_layer(b, join_token(b, embed(b)), parts, ratio)
    head(b, b.norm("norm", collapse_last(b, x), RMS))
    return b.build(x)


FAMILY = Family(name="deepseek_v4", model_types=("deepseek_v4",), build=build)
