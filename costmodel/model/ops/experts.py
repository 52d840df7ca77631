"""Cost of ``experts`` ops: grouped products over the experts that one chip holds.

Implementation "dispatch": tokens travel to their experts by an all-to-all over ep; each expert's
width is split over etp, whose ranks gather the tokens first. Communication is priced in
``costmodel.stage.costs``.
"""

from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import FloatArray, Gemm, Local, Work


def expert_rows(op: Op, local: Local) -> FloatArray:
    """Token rows that the busiest chip's experts process: ``stream tokens x k x etp x imbalance``.

    Every chip sends its stream tokens k times; the chips of one etp group process the same rows.
    """
    return local.stream_tokens * float(op.attributes["top_k"]) * local.etp * local.imbalance


def work(op: Op, block: Block, local: Local) -> Work:
    """Gate, up and down products for every local expert, and the activation between them.

    Gate and up are one product twice as wide.
    """
    hidden = local.none + block.dims[op.weights[0].dims[-1]]
    width = block.dims["expert_ffn"] / local.etp
    num_local = block.dims["experts"] / local.ep
    rows = expert_rows(op, local)
    per_expert = rows / num_local
    gated = len([w for w in op.weights if w.name in ("gate", "up")]) == 2
    into = Gemm(
        m=per_expert, n=width * (2 if gated else 1), k=hidden, count=num_local, grouped=True
    )
    out = Gemm(m=per_expert, n=hidden, k=width, count=num_local, grouped=True)
    activation = 2.0 * rows * width * (3 if gated else 2)
    permute = 8.0 * local.stream_tokens * float(op.attributes["top_k"]) * hidden
    return Work(gemms=(into, out), memory_bytes=activation, permuted_bytes=permute)
