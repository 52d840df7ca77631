"""Parts of transformer blocks, each composed of ops on a BlockBuilder.

Every part takes the name of its (normalised) input and returns the name of its output on the
residual stream, before the residual addition.
"""

from dataclasses import dataclass

from costmodel.model.builder import LAYER, RMS, STREAM, BlockBuilder, Dims, Norm

HEADS: Dims = ("heads",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Multi-head attention with grouped keys and values.

    qk_norm: '' none; 'head' over each head's dimension; 'full' over all heads together;
        'each' with separate scales for every head.
    rotary: elements of each head that are rotated; None none, 0 all of them.
    window: keys that a query sees at most, itself included; 0 no limit.
    gate: the output is multiplied by a sigmoid of its own projection.
    shared_kv: one projection serves as key and as value.
    buckets: learned biases by relative distance, this many for each head; 0 none.
    """

    heads: int
    kv_heads: int
    qk_dim: int
    v_dim: int
    qkv_bias: bool = False
    k_bias: bool | None = None
    out_bias: bool = False
    qk_norm: str = ""
    norm: Norm = RMS
    v_norm: bool = False
    rotary: int | None = 0
    causal: bool = True
    window: int = 0
    chunk: int = 0
    sinks: bool = False
    gate: bool = False
    shared_kv: bool = False
    alibi: bool = False
    buckets: int = 0


def attention(b: BlockBuilder, x: str, a: Attention, *, memory: str = "", prefix: str = "") -> str:
    """q, k, v -> [norms] -> [rotary] -> attention -> [gate] -> output projection.

    memory: the tensor that keys and values come from when it is not x (cross-attention).
    """
    _define(b, a)
    kv_split = ("kv_heads",) if a.kv_heads > 1 else STREAM
    q = b.linear(f"{prefix}q", x, ("heads", "qk_dim"), tp=HEADS, bias=a.qkv_bias)
    source = memory or x
    k_bias = a.qkv_bias if a.k_bias is None else a.k_bias
    k = b.linear(f"{prefix}k", source, (*kv_split, "qk_dim"), tp=kv_split, bias=k_bias)
    v = k
    if not a.shared_kv:
        v = b.linear(f"{prefix}v", source, (*kv_split, "v_dim"), tp=kv_split, bias=a.qkv_bias)
    q = _position(b, f"{prefix}q", q, a, HEADS)
    k = _position(b, f"{prefix}k", k, a, kv_split)
    if a.v_norm:
        v = b.norm(f"{prefix}v_norm", v, Norm(scale=False), tp=kv_split)
    o = _core(b, f"{prefix}attention", (q, k, v), a, kv_split, memory)
    if a.gate:
        gate = b.linear(f"{prefix}out_gate", x, ("heads", "v_dim"), tp=HEADS)
        o = b.activation(f"{prefix}gated", (gate, o), "sigmoid", HEADS)
    return b.linear(f"{prefix}o", o, ("hidden",), tp=HEADS, bias=a.out_bias)


def _define(b: BlockBuilder, a: Attention) -> None:
    b.define(heads=a.heads, qk_dim=a.qk_dim, v_dim=a.v_dim)
    if a.kv_heads > 1:
        b.define(kv_heads=a.kv_heads)


def _position(b: BlockBuilder, name: str, x: str, a: Attention, split: Dims) -> str:
    if a.qk_norm == "each":
        dims = b.tensors[x]
        weights = {"scale": dims}
        function = a.norm.function
        x = b.op(
            "norm",
            f"{name}_norm",
            (x,),
            dims,
            weights=weights,
            tp=split,
            function=function,
            per_head=True,
        )
    elif a.qk_norm:
        over = b.tensors[x] if a.qk_norm == "full" else ("qk_dim",)
        x = b.norm(f"{name}_norm", x, a.norm, over=over, tp=split)
    if a.rotary is not None:
        x = b.rotary(f"{name}_rotary", x, tp=split, size=a.rotary)
    return x


def _core(
    b: BlockBuilder, name: str, qkv: tuple[str, ...], a: Attention, kv_split: Dims, memory: str
) -> str:
    weights: dict[str, Dims] = {"sinks": HEADS} if a.sinks else {}
    if a.buckets:
        b.define(buckets=a.buckets)
        weights |= {"relative_bias": ("buckets", "heads")}
    return b.op(
        "attention",
        name,
        qkv,
        ("heads", "v_dim"),
        weights=weights,
        tp=HEADS + kv_split,
        causal=a.causal,
        window=a.window,
        chunk=a.chunk or None,
        alibi=a.alibi or None,
        keys_stream="encoder" if memory else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).

    q_rank: width of the compressed query; None projects queries directly.
    top_keys: keys that an indexer selects for each query; 0 all of them.
    index_heads, index_dim: heads of the indexer and their width.
    """

    heads: int
    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int
    bias: bool = False
    rotary: bool = True
    top_keys: int = 0
    index_heads: int = 0
    index_dim: int = 0


def latent_attention(b: BlockBuilder, x: str, a: LatentAttention) -> str:
    """Compressed query and key-value projections around an ordinary attention."""
    b.define(heads=a.heads, qk_dim=a.nope_dim + a.rope_dim, v_dim=a.v_dim, kv_rank=a.kv_rank)
    b.define(nope_dim=a.nope_dim, rope_dim=a.rope_dim)
    q = _latent_query(b, x, a)
    if a.top_keys:
        _indexer(b, x, a)
    latent = b.linear("kv_a", x, ("kv_rank",), bias=a.bias)
    latent = b.norm("kv_a_norm", latent, RMS)
    k_rope = b.linear("k_rope", x, ("rope_dim",), bias=a.bias)
    k_rope = b.rotary("k_rotary", k_rope) if a.rotary else k_rope
    k_nope = b.linear("k_b", latent, ("heads", "nope_dim"), tp=HEADS)
    v = b.linear("v_b", latent, ("heads", "v_dim"), tp=HEADS)
    k = b.concat("k", k_nope, k_rope, ("heads", "qk_dim"), tp=HEADS)
    o = b.op(
        "attention",
        "attention",
        (q, k, v),
        ("heads", "v_dim"),
        tp=HEADS,
        causal=True,
        window=0,
        top_keys=a.top_keys or None,
    )
    return b.linear("o", o, ("hidden",), tp=HEADS, bias=a.bias)


def _indexer(b: BlockBuilder, x: str, a: LatentAttention) -> None:
    """Scores all earlier keys with small heads and keeps the best (DeepSeek-V3.2)."""
    b.define(index_heads=a.index_heads, index_dim=a.index_dim)
    source = x if a.q_rank is None else "q_a_norm"
    q = b.linear("index_q", source, ("index_heads", "index_dim"))
    k = b.norm("index_k_norm", b.linear("index_k", x, ("index_dim",)), LAYER)
    weight = b.linear("index_weight", x, ("index_heads",))
    flop = 2 * a.index_heads * a.index_dim
    inputs = (q, k, weight)
    b.op("opaque", "index_scores", inputs, (), flop_per_token=0, flop_per_key=flop, causal=True)


def _latent_query(b: BlockBuilder, x: str, a: LatentAttention) -> str:
    if a.q_rank is not None:
        b.define(q_rank=a.q_rank)
        x = b.norm("q_a_norm", b.linear("q_a", x, ("q_rank",), bias=a.bias), RMS)
    q = b.linear("q_b", x, ("heads", "qk_dim"), tp=HEADS)
    return b.rotary("q_rotary", q, tp=HEADS, size=a.rope_dim, at_end=True) if a.rotary else q


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlp:
    """A dense feed-forward part: down(f(gate x) * up x), or down(f(up x)) when not gated."""

    ffn: int
    gated: bool = True
    function: str = "silu"
    bias: bool = False


def mlp(b: BlockBuilder, x: str, m: Mlp, *, prefix: str = "", dim: str = "ffn") -> str:
    """Column-split up (and gate) projections, activation, row-split down projection."""
    b.define(**{dim: m.ffn})
    gate = (b.linear(f"{prefix}gate", x, (dim,), tp=(dim,), bias=m.bias),) if m.gated else ()
    up = b.linear(f"{prefix}up", x, (dim,), tp=(dim,), bias=m.bias)
    y = b.activation(f"{prefix}act", (*gate, up), m.function, (dim,))
    return b.linear(f"{prefix}down", y, ("hidden",), tp=(dim,), bias=m.bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts, with shared experts beside the routed ones.

    ffn: width of one routed expert; shared_ffn: of all shared experts together, 0 none.
    gated: gate, up and down matrices; else up and down.
    bias: every expert matrix has a bias. router_bias: the router has one (as a parameter).
    shared_gate: the shared experts' output is multiplied by a learned sigmoid per token.
    latent: routed experts work on a projection of this width; 0 on the stream itself.
    """

    experts: int
    top_k: int
    ffn: int
    shared_ffn: int = 0
    function: str = "silu"
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    latent: int = 0


def moe(b: BlockBuilder, x: str, e: Experts) -> str:
    """Router and routed experts, plus shared experts."""
    y = routed(b, x, e)
    if not e.shared_ffn:
        return y
    m = Mlp(ffn=e.shared_ffn, gated=e.gated, function=e.function)
    shared = mlp(b, x, m, prefix="shared_", dim="shared_ffn")
    if e.shared_gate:
        gate = b.linear("shared_gate_score", x, ())
        gate = b.activation("shared_gate_sigmoid", (gate,), "sigmoid", STREAM)
        shared = b.multiply("shared_gated", shared, gate)
    return b.add("moe", y, shared)


def routed(b: BlockBuilder, x: str, e: Experts, *, scored: str = "", scale: bool = False) -> str:
    """Router and routed experts.

    scored: what the router looks at when it is not x. scale: a learned factor for each expert.
    """
    b.define(experts=e.experts, expert_ffn=e.ffn)
    router: dict[str, Dims] = {"weight": ("experts", "hidden")}
    router |= {"bias": ("experts",)} if e.router_bias else {}
    router |= {"expert_scale": ("experts",)} if scale else {}
    scores = b.op("router", "router", (scored or x,), ("experts",), weights=router, top_k=e.top_k)
    width = "hidden"
    if e.latent:
        width = "latent"
        b.define(latent=e.latent)
        x = b.linear("to_latent", x, ("latent",))
    matrices = _expert_matrices(e, width)
    y = b.op(
        "experts",
        "experts",
        (x, scores),
        (width,),
        weights=matrices,
        top_k=e.top_k,
        function=e.function,
    )
    return b.linear("from_latent", y, ("hidden",)) if e.latent else y


def _expert_matrices(e: Experts, width: str) -> dict[str, Dims]:
    matrices: dict[str, Dims] = {"gate": ("experts", "expert_ffn", width)} if e.gated else {}
    matrices |= {"up": ("experts", "expert_ffn", width), "down": ("experts", width, "expert_ffn")}
    if e.bias:
        matrices |= {f"{key}_bias": dims[:-1] for key, dims in matrices.items()}
    return matrices
