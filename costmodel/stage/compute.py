"""Time of an op's work on one chip: rooflines with shape-dependent efficiency.

Rates are per stage option: arrays of shape (O,).
"""

from dataclasses import dataclass

import numpy as np

from costmodel.efficiency import Efficiency
from costmodel.model.ops.work import FloatArray, Gemm, Local, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipRates:
    """Best achievable rates of the chip of each option, shape (O,).

    matmul_flop_per_s: peak of the job's precision times the chip's best measured share.
    attention_flop_per_s: the same at 16 bits, in which attention cores run. vendor_attention,
        portable_attention: share of it that the best attention kernels reach, those of the chip's
        vendor and those written for many chips.
    memory_bytes_per_s: peak bandwidth times its achievable share.
    operand_bytes: of an element that a product reads, in the job's precision; gradient_bytes: of
        an accumulated gradient.
    """

    matmul_flop_per_s: FloatArray
    attention_flop_per_s: FloatArray
    vendor_attention: FloatArray
    portable_attention: FloatArray
    memory_bytes_per_s: FloatArray
    operand_bytes: float
    gradient_bytes: float


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmTime:
    """Seconds of a product: forward, gradient of its input, gradient of its weight; shape (O,)."""

    forward_s: FloatArray
    input_gradient_s: FloatArray
    weight_gradient_s: FloatArray


def gemm_time(gemm: Gemm, rates: ChipRates, efficiency: Efficiency) -> GemmTime:
    """Seconds of the products: each ``2 m n k / (e R) + c bytes / W + t0``.

    Arithmetic at the share e of the best matrix rate R, the part c of the operands' traffic at the
    memory's rate W that the arithmetic does not hide, and a fixed time t0 to fill and drain the
    chip. With the same c and t0 and one e a chip, the mean error is 4 % on 183 shapes measured on
    an A100 and 11 % on 514 of a B200 (SimuMax), 6 % on 22 shapes of 0.02 to 0.78 PFLOP/s on an H100
    (OpenXLA's performance table) and 5 to 8 % on FP8 products of an H100, H200 and GB200 (Azure);
    grouped products follow the same law with t0 for each expert (3 % on an A100, 12 % on a B200).
    The gradient of a weight is added to the accumulated one: read and written. A product over no
    tokens is not run.
    """
    wide = gemm.wide
    rate = rates.attention_flop_per_s if wide else rates.matmul_flop_per_s
    size = max(WIDE_BYTES, rates.operand_bytes) if wide else rates.operand_bytes
    share = efficiency.expert_gemm if gemm.grouped else efficiency.gemm
    part = 1.0 if gemm.columns is None else gemm.n / gemm.columns
    flop_s = 2.0 * gemm.m * gemm.n * gemm.k / (rate * share)
    fixed_s = part * (efficiency.expert_fixed_s if gemm.grouped else efficiency.gemm_fixed_s)
    byte_s = efficiency.gemm_traffic / rates.memory_bytes_per_s
    given, weight, made = part * gemm.m * gemm.k, gemm.n * gemm.k, gemm.m * gemm.n

    def seconds(read: FloatArray, written_bytes: FloatArray) -> FloatArray:
        moved_s = byte_s * (size * read + written_bytes)
        return np.where(gemm.m > 0, gemm.count * (flop_s + moved_s + fixed_s), 0.0)

    return GemmTime(
        forward_s=seconds(given + weight, WIDE_BYTES * made),
        input_gradient_s=seconds(made + weight, WIDE_BYTES * given),
        weight_gradient_s=seconds(given + made, 2.0 * rates.gradient_bytes * weight),
    )


WIDE_BYTES = 2.0
"""Bytes of an element of a product's result, and of the inputs of one that stays at 16 bits."""


def op_time(work: Work, local: Local, rates: ChipRates, efficiency: Efficiency) -> OpTime:
    """Seconds of one op. A product's backward is two products (input and weight gradient), or one
    where its weight is frozen.

    So is that of each of the two products of an attention core that stores its scores; a fused
    core computes them again and takes ``attention_backward`` times its forward.
    """
    none = local.none
    products = [gemm_time(gemm, rates, efficiency) for gemm in work.gemms]
    inputs_s = sum((product.input_gradient_s for product in products), none)
    weights_s = sum((product.weight_gradient_s for product in products), none)
    weights_s = max(0.0, efficiency.backward_products - 1.0) * weights_s
    attention_s = _attention_seconds(work, local, rates, efficiency)
    memory_s, backward_memory_s = _memory_seconds(work, local, rates, efficiency)
    forward_s = sum((product.forward_s for product in products), none) + attention_s + memory_s
    attention_backward = efficiency.attention_backward if work.fused else 2.0
    backward_s = inputs_s + weights_s + attention_backward * attention_s + backward_memory_s
    return OpTime(
        forward_s=forward_s,
        backward_s=backward_s + (forward_s if work.recompute else none),
        memory_s=memory_s,
        weight_gradient_s=weights_s,
    )


def _attention_seconds(
    work: Work, local: Local, rates: ChipRates, efficiency: Efficiency
) -> FloatArray:
    """An attention core forward: ``flop / (a A R) (s + h) / s``.

    A: share of the best matrix rate R that this kind of kernel reaches on the chip.
    """
    if work.attention_flop is None:
        return local.none
    kernel = rates.vendor_attention if efficiency.vendor_attention else rates.portable_attention
    length = max(local.sequence, 1.0) / (local.sequence + efficiency.attention_half_length)
    rate = rates.attention_flop_per_s * kernel * efficiency.attention * length
    return work.attention_flop / rate


def _memory_seconds(
    work: Work, local: Local, rates: ChipRates, efficiency: Efficiency
) -> tuple[FloatArray, FloatArray]:
    """Seconds of memory traffic forward and backward, by default twice the forward's.

    Kernels that store attention scores move what is counted; of other ops, the software's factor
    says how much more than counted they move. Below 16 bits the input of every product is read
    once more and written narrow, straight and transposed for the backward.
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
    factor = efficiency.memory_traffic if work.fused else efficiency.score_traffic
    forward, backward = factor * counted, factor * back
    if work.logits is not None:
        loss = efficiency.head_bytes_per_logit * work.logits / 2.0
        forward, backward = forward + loss, backward + 2.0 * loss
    return forward / rates.memory_bytes_per_s, backward / rates.memory_bytes_per_s
