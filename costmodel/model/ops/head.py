"""Cost of ``head`` ops: the vocabulary product and the cross entropy over its logits."""

from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import Gemm, Local, Work, padded_vocabulary


def work(op: Op, block: Block, local: Local) -> Work:
    """``2 tokens h V / t`` with the padded vocabulary, and one logit per token and local row.

    The product keeps 16 bits in 8- and 4-bit training (Transformer Engine's recipes leave the
    output layer out).
    """
    rows = padded_vocabulary(block.dims["vocab"], local) / local.tp
    hidden = local.none + block.elements(block.tensors[op.inputs[0]])
    gemm = Gemm(m=local.tokens, n=rows, k=hidden, wide=True)
    return Work(gemms=(gemm,), logits=local.tokens * rows)
