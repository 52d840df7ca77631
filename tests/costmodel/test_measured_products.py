"""Measured matrix products against the law of a product's time.

OpenXLA: third_party/xla/xla/service/gpu/model/matmul_interpolator_data.h in tensorflow/tensorflow
at 372d578 (sm_90, bf16). SimuMax: configs/system/a100_pcie.json in MooreThreads/SimuMax. Azure:
Azure_Results in egmsft/AI-benchmarking-guide. Read in December 2026.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.model.ops.work import Gemm
from costmodel.stage.compute import ChipRates, gemm_time

FIXED_S, TRAFFIC = 5.3e-6, 0.56
"""Fitted to all tables at once."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Shapes with their rates in TFLOP/s. share: of the peak, fitted; bandwidth: bytes/s."""

    peak: float
    share: float
    bandwidth: float
    operand_bytes: float
    shapes: tuple[tuple[int, int, int, float], ...]
    median: float


H100_BF16 = Table(
    peak=989e12,
    share=0.941,
    bandwidth=2.97e12,
    operand_bytes=2.0,
    shapes=(
        (4096, 4096, 4096, 783.3),
        (4096, 4096, 256, 392.2),
        (2048, 2048, 2048, 632.0),
        (4096, 2048, 512, 447.0),
        (1024, 2048, 2048, 524.3),
        (1024, 1024, 2048, 350.0),
        (4096, 1024, 512, 343.7),
        (4096, 512, 512, 238.8),
        (512, 4096, 1024, 373.3),
        (256, 2048, 4096, 285.9),
        (1024, 2048, 256, 139.5),
        (1024, 256, 1024, 68.3),
        (512, 256, 512, 21.8),
    ),
    median=0.08,
)
A100_BF16 = Table(
    peak=312e12,
    share=0.767,
    bandwidth=1.6e12,
    operand_bytes=2.0,
    shapes=(
        (4096, 4096, 512, 190.4),
        (4096, 4096, 1792, 212.3),
        (4096, 1536, 5120, 245.8),
        (4096, 3072, 4096, 236.6),
        (4096, 4096, 4096, 225.1),
        (4096, 8192, 3584, 216.7),
        (4096, 8192, 8192, 228.6),
        (4096, 36864, 7168, 237.1),
        (4096, 128256, 8192, 232.3),
    ),
    median=0.06,
)
GB200_FP8 = Table(
    peak=5000e12,
    share=0.582,
    bandwidth=6.4e12,
    operand_bytes=1.0,
    shapes=(
        (1024, 1024, 1024, 349.4),
        (2048, 2048, 2048, 1676.1),
        (4096, 4096, 4096, 2694.7),
        (8192, 8192, 8192, 2781.5),
        (16384, 16384, 16384, 2819.5),
        (6144, 12288, 12288, 2798.7),
        (802816, 192, 768, 1482.5),
    ),
    median=0.06,
)


ONE = np.array([1.0])


def rates_of(peak: float, bandwidth: float, operand_bytes: float = 2.0) -> ChipRates:
    """Rates of one option."""
    return ChipRates(
        matmul_flop_per_s=peak * ONE,
        attention_flop_per_s=peak * ONE,
        vendor_attention=ONE,
        portable_attention=ONE,
        memory_bytes_per_s=bandwidth * ONE,
        operand_bytes=operand_bytes,
        gradient_bytes=4.0,
    )


def rate(table: Table, m: int, n: int, k: int) -> float:
    """Predicted TFLOP/s."""
    constants = replace(
        DEFAULT_EFFICIENCY, gemm=table.share, gemm_fixed_s=FIXED_S, gemm_traffic=TRAFFIC
    )
    rates = rates_of(table.peak, table.bandwidth, table.operand_bytes)
    seconds = gemm_time(Gemm(m=m * ONE, n=n * ONE, k=k * ONE), rates, constants).forward_s
    return float(2.0 * m * n * k / seconds[0] / 1e12)


@pytest.mark.parametrize("table", [H100_BF16, A100_BF16, GB200_FP8])
def test_one_law_follows_shapes_of_every_size(table: Table) -> None:
    errors = [abs(rate(table, m, n, k) / measured - 1.0) for m, n, k, measured in table.shapes]
    assert np.median(errors) < table.median
    assert max(errors) < 0.3


def test_a_grouped_product_waits_for_each_of_its_experts() -> None:
    tokens, free = 4096.0, replace(DEFAULT_EFFICIENCY, gemm_traffic=0.0)

    def seconds(experts: float) -> float:
        product = Gemm(
            m=tokens / experts * ONE, n=4096 * ONE, k=2048 * ONE, count=experts, grouped=True
        )
        return float(gemm_time(product, rates_of(1e15, 3e12), free).forward_s[0])

    assert seconds(64.0) - seconds(8.0) == pytest.approx(56.0 * free.expert_fixed_s)


def test_no_tokens_take_no_time() -> None:
    nothing = Gemm(m=0.0 * ONE, n=4096 * ONE, k=4096 * ONE)
    time = gemm_time(nothing, rates_of(1e15, 3e12), DEFAULT_EFFICIENCY)
    assert float(time.forward_s[0] + time.input_gradient_s[0] + time.weight_gradient_s[0]) == 0.0
