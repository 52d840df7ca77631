"""Cost of ``router`` ops: a small product and a top-k over the experts."""

from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import Gemm, Local, Work


def work(op: Op, block: Block, local: Local) -> Work:
    """``2 tokens E h`` on the residual stream, and 8 bytes of traffic per score."""
    experts, hidden = block.dims["experts"], block.elements(block.tensors[op.inputs[0]])
    gemm = Gemm(m=local.stream_tokens, n=local.none + experts, k=local.none + hidden, wide=True)
    return Work(gemms=(gemm,), memory_bytes=8.0 * local.stream_tokens * experts)
