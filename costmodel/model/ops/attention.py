"""Cost of ``attention`` ops: the core softmax(q k^T) v, fused or not."""

from costmodel.model.flops import keys_seen
from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import Local, Work

FUSED_BY_DEFAULT = True
UNFUSED_SCORE_BYTES = 13.0
"""Bytes moved per attention score, forward, by kernels that store the scores (pooled fit)."""


def work(op: Op, block: Block, local: Local) -> Work:
    """``2 tokens keys heads (qk + v)``; keys seen per query: half when causal, at most the window.

    A kernel that stores the scores (``fused`` false) computes all of them and moves each several
    times. Fused kernels compute them again in the backward (Dao et al., arXiv 2205.14135), others
    do so when told to (``recompute``; Korthikanti et al., arXiv 2205.05198, section 5).
    """
    heads = block.dims["heads"] / local.tp
    widths = block.dims["qk_dim"] + block.dims["v_dim"]
    fused = bool(op.attributes.get("fused", FUSED_BY_DEFAULT))
    keys = keys_seen(op, local.sequence) if fused else local.sequence
    flop = 2.0 * local.tokens * keys * heads * widths
    if fused:
        return Work(attention_flop=flop)
    scores = local.tokens * local.sequence * heads
    return Work(
        attention_flop=flop,
        memory_bytes=UNFUSED_SCORE_BYTES * scores,
        fused=False,
        recompute=bool(op.attributes.get("recompute", False)),
    )
