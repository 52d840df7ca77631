"""Hyper-connections: a residual of several parallel streams (arXiv 2512.24880).

Every part reads a learned mixture of the streams and writes back to all of them. The mixtures are
``opaque`` ops: their weights and arithmetic count, their values are not spelled out.
"""

from costmodel.model.builder import RMS, BlockBuilder, Dims

STREAMS: Dims = ("streams", "hidden")


def opaque(
    b: BlockBuilder, name: str, inputs: tuple[str, ...], out: Dims, flop: int = 0, **weights: Dims
) -> str:
    """An op of which only weights and forward FLOP per token are known."""
    return b.op("opaque", name, inputs, out, weights=weights, flop_per_token=flop)


def collapse(b: BlockBuilder, part: str, x: str) -> tuple[str, str]:
    """(mixture coefficients, one stream to work on): 2 n + n^2 coefficients from all streams."""
    n, hidden = b.dims["streams"], b.dims["hidden"]
    b.define(mix=n * (2 + n), mix_scales=3)
    weights: dict[str, Dims] = {"fn": ("mix", *STREAMS), "base": ("mix",), "scale": ("mix_scales",)}
    mix = opaque(b, f"{part}_mix", (x,), ("mix",), 2 * n * (2 + n) * n * hidden, **weights)
    return mix, opaque(b, f"{part}_collapse", (x, mix), ("hidden",), 2 * n * hidden)


def expand(b: BlockBuilder, part: str, x: str, y: str, mix: str) -> str:
    """Mixes the streams among themselves and adds the part's output to each."""
    n, hidden = b.dims["streams"], b.dims["hidden"]
    return opaque(b, f"{part}_expand", (x, y, mix), STREAMS, 2 * (n * n + n) * hidden)


def collapse_last(b: BlockBuilder, x: str) -> str:
    """One stream before the final norm."""
    n, hidden = b.dims["streams"], b.dims["hidden"]
    b.define(last_mix=n, last_scale=1)
    weights: dict[str, Dims] = {
        "fn": ("last_mix", *STREAMS),
        "base": ("last_mix",),
        "scale": ("last_scale",),
    }
    return opaque(
        b, "last_collapse", (x,), ("hidden",), 2 * n * n * hidden + 2 * n * hidden, **weights
    )


def replicate(b: BlockBuilder, x: str) -> str:
    """All streams start as the embedding."""
    return opaque(b, "replicate", (x,), STREAMS)


def join_token(b: BlockBuilder, token: str) -> str:
    """Start of a multi-token-prediction block: projects the streams and adds the next token."""
    n, hidden = b.dims["streams"], b.dims["hidden"]
    b.define(projected=hidden)
    token = b.linear("token_proj", b.norm("token_norm", token, RMS), ("projected",))
    stream = b.norm("stream_norm", "x", RMS)
    weights: dict[str, Dims] = {"weight": ("projected", "hidden")}
    stream = b.op(
        "opaque",
        "stream_proj",
        (stream,),
        STREAMS,
        weights=weights,
        flop_per_token=2 * hidden * hidden,
        outputs_per_token=n,
    )
    return opaque(b, "joined", (stream, token), STREAMS)
