"""Cost of ``embedding`` ops: a gather, bound by memory bandwidth; no product in model FLOPs."""

from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import Local, Work


def work(op: Op, block: Block, local: Local) -> Work:
    """Reads one row and writes one vector per token; every rank looks up all tokens."""
    size = block.elements(block.tensors[op.outputs[0]])
    return Work(memory_bytes=4.0 * local.tokens * size)
