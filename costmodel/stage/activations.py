"""Bytes that one block keeps for its backward, per token, and its short-lived buffers.

Which tensors an op keeps is part of its kind: a product its input, a norm its input, an
activation its inputs, attention q, k, v, its output and one FP32 number per head and token; what
its ``fused`` and ``dropout`` attributes add is in ``_kept_beside``. Each tensor is counted once,
in the placement in which it was produced. For a dense pre-norm block with a gated MLP this adds
up to ``[8h + 2d(a + 2g) + 2da + 6f]/t + 4a/t`` bytes per token (Korthikanti et al., arXiv
2205.05198, adapted to fused attention without dropout; within 1.5 % of 19 measured B200 peaks).
"""

from costmodel.model.graph import Block, Op
from costmodel.model.ops.experts import expert_rows
from costmodel.model.ops.work import FloatArray, Local, local_size, tensor_bytes
from costmodel.model.placement import Placement, producer_placements

KEEPS_INPUTS = {"norm", "linear", "activation", "attention", "router", "head", "scan", "conv"}
DISCARDED_BY_SELECTIVE = {"norm", "activation"}
"""Selective recomputation drops the outputs of these ops and computes them again."""


def kept_tensors(block: Block, *, selective: bool) -> set[str]:
    """Names of the tensors that the block's backward needs."""
    kept: set[str] = set()
    for op in block.ops:
        if op.kind in KEEPS_INPUTS or op.attributes.get("function") == "mul":
            kept |= set(op.inputs)
        if op.kind == "attention":
            kept |= set(op.outputs)
    if selective:
        kept -= {t for op in block.ops if op.kind in DISCARDED_BY_SELECTIVE for t in op.outputs}
    return kept


def kept_bytes(block: Block, local: Local, *, selective: bool = False) -> FloatArray:
    """Bytes kept per in-flight micro-batch on one chip, shape (O,)."""
    placements = producer_placements(block)
    producers = {name: op for op in block.ops for name in op.outputs}
    total = local.none
    for tensor in sorted(kept_tensors(block, selective=selective)):
        if placements[tensor] is Placement.PARTIAL:
            continue
        if placements[tensor] is Placement.STREAM:
            size = float(block.elements(block.tensors[tensor]))
            total = total + 2.0 * local.stream_tokens * size
        else:
            total = total + tensor_bytes(producers[tensor], block, (tensor,), local)
    return total + sum((_kept_beside(op, block, local, selective) for op in block.ops), local.none)


def _kept_beside(op: Op, block: Block, local: Local, selective: bool) -> FloatArray:
    """Bytes that an op keeps beside its inputs and outputs."""
    if op.kind == "attention":
        return _attention_kept(op, block, local)
    if op.kind == "router":
        return 8.0 * local.stream_tokens * block.dims["experts"]
    if op.kind == "experts":
        rows = expert_rows(op, local)
        width = block.dims["expert_ffn"] / local.etp
        hidden = block.dims[op.weights[0].dims[-1]]
        return rows * (2.0 * hidden + (4.0 if selective else 6.0) * width)
    if op.kind == "activation" and len(op.inputs) > 1 and not op.attributes.get("fused", True):
        return local.none if selective else tensor_bytes(op, block, op.outputs, local)
    if op.attributes.get("dropout", False):
        return tensor_bytes(op, block, op.outputs, local) / 2.0
    return local.none


def _attention_kept(op: Op, block: Block, local: Local) -> FloatArray:
    """Fused: the FP32 log-sum-exp, 4 bytes a head and token.

    Not fused: every score's probability, with dropout also its mask (1 byte) and the result,
    unless they are computed again: ``5 a s`` bytes a token (Korthikanti et al., section 4.1).
    """
    heads = local.tokens * local_size(op, block, ("heads",), local)
    if op.attributes.get("fused", True):
        return 4.0 * heads
    if op.attributes.get("recompute", False):
        return local.none
    return (5.0 if op.attributes.get("dropout", False) else 2.0) * heads * local.sequence


def boundary_kept_bytes(block: Block, local: Local) -> FloatArray:
    """Bytes kept per in-flight micro-batch under full recomputation: the block's inputs."""
    size = sum(block.elements(block.tensors[name]) for name in block.inputs)
    return 2.0 * local.stream_tokens * float(size)


def transient_bytes(block: Block, local: Local) -> FloatArray:
    """Largest short-lived buffers of one layer: gradients of one op's inputs and outputs.

    The maximum over ops; for a gated MLP the activation's ``6f`` bytes per token over t.
    """
    largest = local.none
    for op in block.ops:
        held = tensor_bytes(op, block, op.inputs + op.outputs, local)
        if op.kind == "experts":
            held = 2.0 * expert_rows(op, local) * block.dims[op.weights[0].dims[-1]] * 2.0
        if op.kind != "head":
            largest = held.clip(min=largest)
    return largest
