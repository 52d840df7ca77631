"""Cost of ``attention`` ops: the core softmax(q k^T) v, fused or not."""

from costmodel.model.flops import keys_seen
from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import Local, Work

FUSED_BY_DEFAULT = True
SCORE_BYTES = 12.0
"""Bytes moved per attention score, forward, by 16-bit kernels that store the scores: product
written 2, causal softmax read 1 (half of them) and written 2, dropout read 2, written 2 and its
mask 1, read by the product with v 2."""

SCORE_BYTES_BACKWARD = 17.0
"""The same backward: for the gradient of v read 2, gradient of the scores written 2, dropout read
2 + 1 and written 2, softmax read 1 + 1 and written 2, read for the gradients of q and k 4."""


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
        memory_bytes=SCORE_BYTES * scores,
        backward_bytes=SCORE_BYTES_BACKWARD * scores,
        fused=False,
        recompute=bool(op.attributes.get("recompute", False)),
    )
