"""Cost of `bias` ops: none forward, for the product before or the kernel after adds it in passing.

(Epilogues of the matrix library; Megatron-LM's ``fused_bias_gelu`` and ``fused_bias_dropout``.) The
backward reads the gradient once to sum it over the tokens.
"""

from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import Local, Work, tensor_bytes


def work(op: Op, block: Block, local: Local) -> Work:
    """Two bytes of each gradient element, read once."""
    read = tensor_bytes(op, block, op.outputs, local)
    return Work(memory_bytes=local.none, backward_bytes=read)
