"""Cost of ``linear`` ops: one matrix product."""

from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import Gemm, Local, Work, local_size, op_tokens


def work(op: Op, block: Block, local: Local) -> Work:
    """``2 m n k`` with m tokens, n local outputs, k local inputs (weight dims: out then in)."""
    inputs = block.tensors[op.inputs[0]]
    outputs = tuple(dim for dim in op.weights[0].dims if dim not in inputs)
    k = local_size(op, block, tuple(d for d in op.weights[0].dims if d in inputs), local)
    n = local_size(op, block, outputs, local)
    return Work(gemms=(Gemm(m=op_tokens(op, local), n=n + local.none, k=k + local.none),))
