"""Time of an op's work on one chip: rooflines with shape-dependent efficiency.

Rates are per stage option: arrays of shape (O,).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costmodel.efficiency import Efficiency
from costmodel.model.ops.work import FloatArray, Gemm, Local, Work

TINY_SHARE = 1e-9
"""Floor of the efficiency, so that a product over no tokens takes no time and not 0 / 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipRates:
    """Best achievable rates of the chip of each option, shape (O,).

    matmul_flop_per_s: peak of the job's precision times the chip's best measured share.
    attention_flop_per_s: the same at 16 bits, in which attention cores run.
    memory_bytes_per_s: peak bandwidth times its achievable share.
    """

    matmul_flop_per_s: FloatArray
    attention_flop_per_s: FloatArray
    memory_bytes_per_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """Seconds of one op, forward and backward; arrays of shape (O,).

    ``memory_s`` is the part of the forward bound by memory bandwidth: what selective
    recomputation repeats. ``weight_gradient_s`` is the part of the backward that no other stage
    waits for: of each product the one with its weight's gradient; attention has none.
    """

    forward_s: FloatArray
    backward_s: FloatArray
    memory_s: FloatArray
    weight_gradient_s: FloatArray


def gemm_share(gemm: Gemm, efficiency: Efficiency) -> NDArray[np.float64]:
    """Share of the best matrix rate: ``e m/(m + m0) n/(n + n0) k/(k + n0)``.

    Saturating form, 3.5 % mean error on 183 measured A100 shapes; m0 and n0 from a pooled fit.
    """
    base = efficiency.expert_gemm if gemm.grouped else efficiency.gemm
    half_rows = efficiency.expert_half_rows if gemm.grouped else efficiency.gemm_half_rows
    half = efficiency.gemm_half_columns
    columns = gemm.n if gemm.columns is None else gemm.columns
    return (
        base
        * (gemm.m / (gemm.m + half_rows))
        * (columns / (columns + half))
        * (gemm.k / (gemm.k + half))
    )


def gemm_flop(gemm: Gemm) -> NDArray[np.float64]:
    """Arithmetic of the products: ``2 m n k count``."""
    return 2.0 * gemm.m * gemm.n * gemm.k * gemm.count


def op_time(work: Work, local: Local, rates: ChipRates, efficiency: Efficiency) -> OpTime:
    """Seconds of one op. A product's backward is two products (input and weight gradient), or one
    where its weight is frozen.

    So is that of each of the two products of an attention core that stores its scores; a fused
    core computes them again and takes ``attention_backward`` times its forward.
    """
    none = local.none
    gemm_s, attention_s = none, none
    for gemm in work.gemms:
        best = rates.attention_flop_per_s if gemm.wide else rates.matmul_flop_per_s
        rate = best * np.maximum(gemm_share(gemm, efficiency), TINY_SHARE)
        gemm_s = gemm_s + gemm_flop(gemm) / rate
    if work.attention_flop is not None:
        length = max(local.sequence, 1.0) / (local.sequence + efficiency.attention_half_length)
        rate = rates.attention_flop_per_s * efficiency.attention * length
        attention_s = work.attention_flop / rate
    memory_s, backward_memory_s = _memory_seconds(work, local, rates, efficiency)
    forward_s = gemm_s + attention_s + memory_s
    attention_backward = efficiency.attention_backward if work.fused else 2.0
    backward_s = efficiency.backward_products * gemm_s + attention_backward * attention_s
    backward_s = backward_s + backward_memory_s + (forward_s if work.recompute else none)
    return OpTime(
        forward_s=forward_s,
        backward_s=backward_s,
        memory_s=memory_s,
        weight_gradient_s=max(0.0, efficiency.backward_products - 1.0) * gemm_s,
    )


def _memory_seconds(
    work: Work, local: Local, rates: ChipRates, efficiency: Efficiency
) -> tuple[FloatArray, FloatArray]:
    """Seconds of memory traffic forward and backward, by default twice the forward's.

    Below 16 bits the input of every product is read once more and written narrow, straight and
    transposed for the backward.
    """
    counted = local.none if work.memory_bytes is None else work.memory_bytes
    back = 2.0 * counted if work.backward_bytes is None else work.backward_bytes
    if work.permuted_bytes is not None:
        permuted = efficiency.expert_permute * work.permuted_bytes
        counted, back = counted + permuted, back + 2.0 * permuted
    if efficiency.quantise_bytes:
        narrow = sum((g.m * g.k * g.count for g in work.gemms if not g.wide), local.none)
        counted = counted + efficiency.quantise_bytes * narrow
        back = back + 2.0 * efficiency.quantise_bytes * narrow
    forward, backward = efficiency.memory_traffic * counted, efficiency.memory_traffic * back
    if work.logits is not None:
        loss = efficiency.head_bytes_per_logit * work.logits / 2.0
        forward, backward = forward + loss, backward + 2.0 * loss
    return forward / rates.memory_bytes_per_s, backward / rates.memory_bytes_per_s
