"""What one op does on one chip for one micro-batch: the common form of all op kinds.

Each op kind is one file of this package with a function ``work(op, block, local) -> Work``; the
registry in ``costmodel.model.ops.registry`` finds it. Arrays have one entry per stage option.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from costmodel.model.flops import op_forward_flop
from costmodel.model.graph import Block, Op

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """One chip's share of a micro-batch under each stage option; arrays of shape (O,).

    tokens: tokens that one tp group processes: micro_batch_size x sequence / cp.
    stream_tokens: tokens of the residual stream on one chip (``tokens`` / tp with sequence
        parallelism). sequence: tokens of the whole sequence of the block's stream, a number.
    tp, cp, ep, etp: degrees. imbalance: busiest over mean expert load.
    vocab_divisor: padding of the vocabulary.
    """

    tokens: FloatArray
    stream_tokens: FloatArray
    sequence: float
    tp: FloatArray
    cp: FloatArray
    ep: FloatArray
    etp: FloatArray
    imbalance: float
    vocab_divisor: int

    @property
    def none(self) -> FloatArray:
        """Zeros of shape (O,)."""
        return np.zeros_like(self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """``count`` products of (m x k) by (k x n) on one chip; m, n, k are arrays of shape (O,).

    grouped: the products of one expert layer, run as one grouped kernel.
    columns: n of the product that this one is run as a part of, None if it is run alone.
    wide: it runs at 16 bits at least, whatever the job's precision.
    """

    m: FloatArray
    n: FloatArray
    k: FloatArray
    count: FloatArray | float = 1.0
    grouped: bool = False
    columns: FloatArray | None = None
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Forward work of one op on one chip; its backward: ``costmodel.stage.compute``.

    gemms: matrix products. attention_flop: arithmetic of an attention core.
    memory_bytes: traffic of ops bound by memory bandwidth; backward_bytes: that of their backward,
        None for twice as much. permuted_bytes: that of sorting tokens by expert.
    logits: elements of the logit matrix.
    fused: whether the attention core is one kernel, whose backward repeats its forward.
    recompute: the backward runs the op's forward again first.
    """

    gemms: tuple[Gemm, ...] = ()
    attention_flop: FloatArray | None = None
    memory_bytes: FloatArray | None = None
    backward_bytes: FloatArray | None = None
    permuted_bytes: FloatArray | None = None
    logits: FloatArray | None = None
    fused: bool = True
    recompute: bool = False


def local_size(op: Op, block: Block, dims: tuple[str, ...], local: Local) -> FloatArray:
    """Elements of a weight or of one token of a tensor on one chip, split by the op's tp_dims."""
    size = float(prod(block.dims[dim] for dim in dims))
    if "vocab" in dims and "vocab" in op.tp_dims:
        size /= block.dims["vocab"]
        return size * padded_vocabulary(block.dims["vocab"], local) / local.tp
    return size / local.tp if any(dim in op.tp_dims for dim in dims) else size + local.none


def padded_vocabulary(vocab: int, local: Local) -> FloatArray:
    """Vocabulary rounded up to a multiple of divisor x tp: ``ceil(V / (d t)) d t``.

    As Megatron-LM pads (``make-vocab-size-divisible-by``).
    """
    unit = local.vocab_divisor * local.tp
    return np.ceil(vocab / unit) * unit


def op_tokens(op: Op, local: Local) -> FloatArray:
    """Tokens that one chip processes at this op: its share of the stream, or the whole group's."""
    return local.tokens if op.tp_dims else local.stream_tokens


def tensor_bytes(op: Op, block: Block, names: tuple[str, ...], local: Local) -> FloatArray:
    """Bytes of these tensors on one chip at two bytes an element, in the op's own placement."""
    size = sum((local_size(op, block, block.tensors[name], local) for name in names), local.none)
    return 2.0 * op_tokens(op, local) * size


def moves(op: Op, block: Block, local: Local) -> Work:
    """Work of an op that only reads its inputs and writes its outputs."""
    return Work(memory_bytes=tensor_bytes(op, block, op.inputs + op.outputs, local))


def fused(op: Op, block: Block, local: Local) -> Work:
    """Work of an op of which only the arithmetic is known: its model FLOPs at a fused core's rate.

    Split over tp where the op splits. Such ops have no measured kernels here.
    """
    flop = op_tokens(op, local) * op_forward_flop(op, block, keys=local.sequence)
    split = local.tp if op.tp_dims else 1.0
    moved = tensor_bytes(op, block, op.inputs + op.outputs, local)
    return Work(attention_flop=flop / split + local.none, memory_bytes=moved)
