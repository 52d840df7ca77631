"""Chips and kernels from sweeps."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.calibration.chip_profile import DEFAULTS, chip_profile
from costmodel.calibration.files import read_measurements
from costmodel.calibration.measurements import (
    AttentionPoint,
    GemmPoint,
    Measurements,
    StreamPoint,
    attention_flop,
)
from costmodel.calibration.products import fit_attention, fit_gemms, fit_streams
from costmodel.calibration.software_profile import kernel_profile
from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.errors import InputError
from costmodel.hardware.read import load_chip

SAMPLES = Path(__file__).parent / "samples"
SHAPES = [
    (m, n, k)
    for m in (64, 256, 1024, 4096, 16384)
    for n, k in ((512, 4096), (4096, 512), (4096, 4096), (8192, 8192))
]
LENGTHS = (128.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0)
A100 = load_chip("nvidia-a100-pcie-80g")


def gemm(m: float, n: float, k: float, rate: float, precision: str = "bf16") -> GemmPoint:
    seconds = 2.0 * m * n * k / rate
    return GemmPoint(where="made:1", m=m, n=n, k=k, batch=1.0, precision=precision, seconds=seconds)


def attention(length: float, rate: float) -> AttentionPoint:
    """The time of a unit of it gives the time at a rate."""
    one = AttentionPoint(
        where="made:1",
        batch=2.0,
        heads=16.0,
        sequence=length,
        head_dim=128.0,
        causal=True,
        precision="bf16",
        seconds=1.0,
    )
    return replace(one, seconds=attention_flop(one) / rate)


def gemms(top: float, fixed_s: float, byte_s: float) -> list[GemmPoint]:
    def rate(m: float, n: float, k: float) -> float:
        flop, moved = 2.0 * m * n * k, 2.0 * (m * k + k * n + m * n)
        return flop / (flop / top + fixed_s + byte_s * moved)

    return [gemm(m, n, k, rate(m, n, k)) for m, n, k in SHAPES]


@given(
    share=st.floats(0.3, 0.98),
    fixed_s=st.floats(2e-6, 3e-5),
    byte_s=st.floats(1e-13, 1e-12),
)
def test_a_known_law_is_found_again(share: float, fixed_s: float, byte_s: float) -> None:
    fit = fit_gemms(gemms(312e12 * share, fixed_s, byte_s), DEFAULTS)

    assert fit.asymptote.value == pytest.approx(312e12 * share, rel=0.02)
    assert fit.fixed_s.value == pytest.approx(fixed_s, rel=0.1)
    assert fit.byte_s.value == pytest.approx(byte_s, rel=0.2)
    assert fit.residuals.p90 < 0.02
    assert fit.best.value <= fit.asymptote.value


def test_the_share_is_that_of_the_best_shape() -> None:
    """Every fourth of the published shapes; the best of them reached 0.803 of the peak."""
    measured = read_measurements([SAMPLES / "a100_pcie_gemm.csv"])
    profile = chip_profile(measured, A100, "x")

    assert [n.name for n in profile.numbers] == ["matmul_fraction/bf16"]
    assert profile.numbers[0].value == pytest.approx(0.803, abs=0.001)
    assert profile.residuals["products, bf16"].median < 0.05
    assert "memory_fraction" in profile.kept


def test_larger_shapes_are_asked_for_where_the_law_promises_more() -> None:
    few = Measurements(gemms=tuple(p for p in gemms(290e12, 3e-5, 5e-13) if p.m <= 1024))

    assert "larger shapes" in " ".join(chip_profile(few, A100, "x").remarks)


def test_what_is_faster_than_the_chip_is_refused_with_all_that_is() -> None:
    points = (gemm(4096, 4096, 4096, 500e12), gemm(4096, 4096, 4096, 1e13, "mxfp8"))
    streams = (StreamPoint(where="made:9", moved_bytes=1e9, seconds=1e-4),)

    with pytest.raises(InputError) as caught:
        chip_profile(Measurements(gemms=points, streams=streams), A100, "x")
    text = str(caught.value)

    assert len(caught.value.violations) == 3
    assert "must not exceed the peak of nvidia-a100-pcie-80g, 312 TFLOP/s" in text
    assert "got '500 TFLOP/s'" in text
    assert "memory bandwidth" in text


def test_streams_give_the_share_of_the_memory_bandwidth() -> None:
    points = [StreamPoint(where="made:1", moved_bytes=s, seconds=s / 1.6e12) for s in (1e8, 1e9)]

    assert fit_streams(points).best.value == pytest.approx(1.6e12)
    profile = chip_profile(Measurements(streams=tuple(points)), A100, "x")
    bandwidth = A100.memory_bytes_per_s or 0.0
    assert profile.numbers[0].value == pytest.approx(1.6e12 / bandwidth)


@given(rate=st.floats(1e13, 2e14), half=st.floats(40.0, 2000.0))
def test_attention_is_found_again(rate: float, half: float) -> None:
    points = [attention(length, rate * length / (length + half)) for length in LENGTHS]
    fit = fit_attention(points, DEFAULTS)

    assert fit.rate.value == pytest.approx(rate, rel=0.03)
    assert fit.half_length.value == pytest.approx(half, rel=0.1)


def test_the_attention_constant_is_what_the_cost_model_multiplies() -> None:
    """Sheet's share of the peak, times the constant, is the rate at infinite length again."""
    h100 = load_chip("nvidia-h100-sxm-80g")
    points = tuple(attention(length, 4e14 * length / (length + 300.0)) for length in LENGTHS)
    entries = kernel_profile(Measurements(attention=points), "ours", h100).document["efficiency"]
    kernel = "vendor" if DEFAULT_EFFICIENCY.vendor_attention else "portable"
    sheet = (h100.attention_fraction[kernel] or 0.0) * h100.peak("bf16")

    assert entries["attention"]["value"] * sheet == pytest.approx(4e14, rel=0.03)
    assert entries["attention_half_length"]["value"] == pytest.approx(300.0, rel=0.1)


def test_attention_faster_than_it_can_be_is_not_stated() -> None:
    points = tuple(attention(length, 5e15) for length in LENGTHS)
    chip = load_chip("nvidia-h100-sxm-80g")
    profile = kernel_profile(Measurements(attention=points), "ours", chip)

    assert "attention" not in profile.document["efficiency"]
    assert "is not stated" in " ".join(profile.remarks)


def test_kernels_alone_give_constants_of_products() -> None:
    measured = Measurements(gemms=tuple(gemms(250e12, 8e-6, 4e-13)))
    profile = kernel_profile(measured, "ours", A100)
    entries = profile.document["efficiency"]

    assert entries["gemm_fixed_s"]["value"] == pytest.approx(8e-6, rel=0.1)
    traffic = 4e-13 * A100.streaming_bytes_per_s()
    assert entries["gemm_traffic"]["value"] == pytest.approx(traffic, rel=0.2)
    assert "attention" not in entries
