"""DeepSeek-V4's attention: a window of recent keys, and compressed keys of everything before.

One key of all heads serves as value too. Every ``ratio`` tokens are pooled to one compressed key;
at ratio 4 the pools overlap and an indexer picks the best. Sizes as in the configuration class of
Hugging Face transformers 5.24. Pooling and indexer are ``opaque`` ops.
"""

from dataclasses import dataclass

from costmodel.model.builder import RMS, BlockBuilder, Dims, Norm
from costmodel.model.hyper import opaque

INDEXED_RATIO = 4
"""Compression ratio whose pools overlap and whose keys an indexer selects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Sizes; ``ratio`` 0: the window only. groups, o_rank: the low-rank output projection."""

    heads: int
    dim: int
    rope_dim: int
    q_rank: int
    groups: int
    o_rank: int
    window: int
    ratio: int
    index_heads: int
    index_dim: int
    index_keys: int


def compressed_attention(b: BlockBuilder, x: str, a: Compressed) -> str:
    """q and shared key, attention over window and compressed keys, grouped output projection."""
    b.define(heads=a.heads, qk_dim=a.dim, v_dim=a.dim, q_rank=a.q_rank, groups=a.groups)
    b.define(o_rank=a.o_rank, group_width=a.heads * a.dim // a.groups)
    low = b.norm("q_a_norm", b.linear("q_a", x, ("q_rank",)), RMS)
    q = b.linear("q_b", low, ("heads", "qk_dim"), tp=("heads",))
    q = b.norm("q_norm", q, Norm(scale=False), tp=("heads",))
    q = b.rotary("q_rotary", q, tp=("heads",), size=a.rope_dim, at_end=True)
    kv = b.norm("kv_norm", b.linear("kv", x, ("qk_dim",)), RMS)
    kv = b.rotary("kv_rotary", kv, size=a.rope_dim, at_end=True)
    inputs = (q, kv, kv, *_compressed_keys(b, x, low, a))
    o = b.op(
        "attention",
        "attention",
        inputs,
        ("heads", "v_dim"),
        weights={"sinks": ("heads",)},
        tp=("heads",),
        causal=True,
        window=a.window,
        compress=a.ratio or None,
        compressed_keys=a.index_keys if a.ratio == INDEXED_RATIO else None,
    )
    return _output(b, o, a)


def _output(b: BlockBuilder, o: str, a: Compressed) -> str:
    """Each group of heads to ``o_rank`` numbers, then all of them to the stream."""
    weight = {"weight": ("groups", "o_rank", "group_width")}
    flop = 2 * a.heads * a.dim * a.o_rank
    out, tp = ("groups", "o_rank"), ("heads", "groups")
    y = b.op("opaque", "o_a", (o,), out, weights=weight, tp=tp, flop_per_token=flop)
    return b.linear("o_b", y, ("hidden",), tp=("groups",))


def _compressed_keys(b: BlockBuilder, x: str, low: str, a: Compressed) -> tuple[str, ...]:
    if not a.ratio:
        return ()
    if a.ratio == INDEXED_RATIO:
        _indexer(b, x, low, a)
    return (_pool(b, x, "compress", "qk_dim", a.ratio),)


def _pool(b: BlockBuilder, x: str, name: str, dim: str, ratio: int) -> str:
    """Weighted mean of the keys of ``ratio`` tokens (of twice as many where pools overlap)."""
    wide = f"{name}_wide"
    b.define(ratio=ratio, **{wide: b.dims[dim] * (2 if ratio == INDEXED_RATIO else 1)})
    keys = b.linear(f"{name}_kv", x, (wide,))
    gate = b.linear(f"{name}_gate", x, (wide,))
    bias: Dims = ("ratio", wide)
    pooled = opaque(b, f"{name}_pool", (keys, gate), (dim,), position_bias=bias)
    return b.norm(f"{name}_norm", pooled, RMS)


def _indexer(b: BlockBuilder, x: str, low: str, a: Compressed) -> None:
    b.define(index_heads=a.index_heads, index_dim=a.index_dim)
    keys = _pool(b, x, "index", "index_dim", a.ratio)
    q = b.linear("index_q", low, ("index_heads", "index_dim"))
    weight = b.linear("index_weight", x, ("index_heads",))
    b.op(
        "opaque",
        "index_scores",
        (q, keys, weight),
        (),
        flop_per_token=0,
        flop_per_key=2 * a.index_heads * a.index_dim,
        key_stride=a.ratio,
        causal=True,
    )
