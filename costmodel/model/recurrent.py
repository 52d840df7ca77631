"""State-space and linear-attention parts: projections, short convolutions, a scan along the
sequence. The scan's arithmetic is counted and not spelled out, so these blocks are not executable.
"""

from dataclasses import dataclass

from costmodel.model.builder import RMS, STREAM, BlockBuilder, Dims


def short_conv(
    b: BlockBuilder, name: str, x: str, kernel: int, *, tp: Dims, bias: bool = False
) -> str:
    """Depthwise convolution along the sequence, then SiLU."""
    b.define(conv_kernel=kernel)
    dims = b.tensors[x]
    weights = {"weight": (*dims, "conv_kernel")} | ({"bias": dims} if bias else {})
    y = b.op("conv", name, (x,), dims, weights=weights, tp=tp, kernel=kernel, depthwise=True)
    return b.activation(f"{name}_act", (y,), "silu", tp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba:
    """Selective state space of Mamba (arXiv 2312.00752).

    inner: width of the scan. inner_norms: norms on dt, B and C (Jamba).
    """

    inner: int
    state: int
    kernel: int
    rank: int
    bias: bool = False
    conv_bias: bool = True
    inner_norms: bool = False


_INNER: Dims = ("inner",)


def mamba(b: BlockBuilder, x: str, m: Mamba) -> str:
    """in -> conv -> (dt, B, C) -> scan -> gate -> out."""
    b.define(inner=m.inner, state=m.state, rank=m.rank)
    u = b.linear("u", x, _INNER, tp=_INNER, bias=m.bias)
    z = b.linear("z", x, _INNER, tp=_INNER, bias=m.bias)
    u = short_conv(b, "conv", u, m.kernel, tp=_INNER, bias=m.conv_bias)
    small = [b.linear(n, u, (d,), tp=_INNER) for n, d in _SMALL]
    if m.inner_norms:
        small = [b.norm(f"{name}_norm", name, RMS) for name in small]
    dt = b.linear("dt_wide", small[0], _INNER, tp=_INNER, bias=True)
    weights = {"a_log": ("inner", "state"), "skip": _INNER}
    y = b.op(
        "scan",
        "scan",
        (u, dt, small[1], small[2]),
        _INNER,
        weights=weights,
        tp=_INNER,
        state=m.state,
        kind="mamba",
    )
    y = b.activation("gated", (z, y), "silu", _INNER)
    return b.linear("out", y, ("hidden",), tp=_INNER, bias=m.bias)


_SMALL = (("dt", "rank"), ("b", "state"), ("c", "state"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """State space duality of Mamba-2 (arXiv 2405.21060): heads that share B and C in groups."""

    heads: int
    head_dim: int
    groups: int
    state: int
    kernel: int
    chunk: int
    bias: bool = False
    conv_bias: bool = True


def mamba2(b: BlockBuilder, x: str, m: Mamba2) -> str:
    """in -> conv -> scan -> gate -> norm -> out."""
    b.define(ssm_heads=m.heads, ssm_dim=m.head_dim, state=m.state)
    wide, heads = ("ssm_heads", "ssm_dim"), ("ssm_heads",)
    group = ("groups",) if m.groups > 1 else STREAM
    if m.groups > 1:
        b.define(groups=m.groups)
    z = b.linear("z", x, wide, tp=heads, bias=m.bias)
    u = b.linear("u", x, wide, tp=heads, bias=m.bias)
    narrow = [b.linear(n, x, (*group, "state"), tp=group, bias=m.bias) for n in ("b", "c")]
    dt = b.linear("dt", x, heads, tp=heads, bias=m.bias)
    u = short_conv(b, "u_conv", u, m.kernel, tp=heads, bias=m.conv_bias)
    narrow = [
        short_conv(b, f"{name}_conv", t, m.kernel, tp=group, bias=m.conv_bias)
        for name, t in zip("bc", narrow, strict=True)
    ]
    weights = {"a_log": heads, "skip": heads, "dt_bias": heads}
    y = b.op(
        "scan",
        "scan",
        (u, *narrow, dt),
        wide,
        weights=weights,
        tp=heads + group,
        state=m.state,
        chunk=m.chunk,
        kind="mamba2",
    )
    y = b.norm("gated_norm", b.activation("gated", (z, y), "silu", heads), RMS, over=wide, tp=heads)
    return b.linear("out", y, ("hidden",), tp=heads, bias=m.bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaNet:
    """Gated delta rule (arXiv 2412.06464).

    Decay per value head: Qwen3.5. Decay per channel through a low rank ``decay_rank``, and an
    output gate through the same rank: Kimi Delta Attention (arXiv 2510.26692).
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    decay_rank: int = 0


_VALUE: Dims = ("value_heads",)
_KEY: Dims = ("key_heads",)


def delta_net(b: BlockBuilder, x: str, d: DeltaNet) -> str:
    """q, k, v -> conv -> scan with decay and write strength -> norm -> gate -> out."""
    b.define(value_heads=d.value_heads, key_heads=d.key_heads)
    b.define(key_dim=d.key_dim, value_dim=d.value_dim)
    wide, keys = ("value_heads", "value_dim"), ("key_heads", "key_dim")
    q = short_conv(b, "q_conv", b.linear("q", x, keys, tp=_KEY), d.kernel, tp=_KEY)
    k = short_conv(b, "k_conv", b.linear("k", x, keys, tp=_KEY), d.kernel, tp=_KEY)
    v = short_conv(b, "v_conv", b.linear("v", x, wide, tp=_VALUE), d.kernel, tp=_VALUE)
    write = b.linear("write", x, _VALUE, tp=_VALUE)
    decay, gate = _decay_and_gate(b, x, d)
    channels = wide if d.decay_rank else _VALUE
    weights = {"dt_bias": channels, "a_log": _VALUE}
    y = b.op(
        "scan",
        "scan",
        (q, k, v, decay, write),
        wide,
        weights=weights,
        tp=_VALUE + _KEY,
        state=d.key_dim,
        kind="delta",
    )
    y = b.norm("out_norm", y, RMS, tp=_VALUE)
    y = b.activation("gated", (gate, y), "sigmoid" if d.decay_rank else "silu", _VALUE)
    return b.linear("out", y, ("hidden",), tp=_VALUE)


def _decay_and_gate(b: BlockBuilder, x: str, d: DeltaNet) -> tuple[str, str]:
    wide = ("value_heads", "value_dim")
    if not d.decay_rank:
        decay = b.linear("decay", x, _VALUE, tp=_VALUE)
        return decay, b.linear("delta_gate", x, wide, tp=_VALUE)
    b.define(decay_rank=d.decay_rank)
    low = [b.linear(f"{name}_low", x, ("decay_rank",)) for name in ("decay", "gate")]
    decay = b.linear("decay", low[0], wide, tp=_VALUE)
    return decay, b.linear("delta_gate", low[1], wide, tp=_VALUE)
