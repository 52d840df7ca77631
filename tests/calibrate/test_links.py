"""Links from collectives: known curves are found again, published ones within their errors."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.calibration.files import read_measurements
from costmodel.calibration.link_profile import bus_bytes_per_s, link_profile
from costmodel.calibration.links import (
    FEWEST,
    LARGE_BYTES,
    Setting,
    chosen,
    fit_link,
    group_terms,
    log_seconds,
)
from costmodel.calibration.measurements import CollectivePoint
from costmodel.errors import InputError
from costmodel.hardware.read import load_link
from costmodel.model.placement import Collective
from tests.calibrate.texts import nccl_text, point

SAMPLES = Path(__file__).parent / "samples"
SIZES = [2**i for i in range(13, 34)]
NVLINK = load_link("nvlink4")
INSIDE = Setting(link=NVLINK, scale_up=True)
ACROSS = Setting(link=load_link("infiniband-ndr"), scale_up=False, nics=8)


def curve(
    setting: Setting,
    op: Collective,
    *,
    share: float,
    latency_s: float,
    ranks: int = 8,
    nodes: int = 1,
) -> list[CollectivePoint]:
    """What the cost model predicts with this efficiency and latency."""
    bare = [point(op, ranks, size, 1.0, nodes) for size in SIZES]
    rates, steady_s, hops = np.array([group_terms(one, setting) for one in bare]).T
    times = np.exp(log_seconds(bare, share * rates, steady_s + latency_s * hops))
    return [
        point(op, ranks, one.payload_bytes, float(t), nodes)
        for one, t in zip(bare, times, strict=True)
    ]


@given(
    share=st.floats(0.1, 1.5),
    latency_us=st.floats(0.5, 40.0),
    ranks=st.sampled_from([2, 3, 8, 16]),
    op=st.sampled_from([*Collective]),
)
def test_a_known_curve_is_found_again(
    share: float, latency_us: float, ranks: int, op: Collective
) -> None:
    points = curve(INSIDE, op, share=share, latency_s=latency_us * 1e-6, ranks=ranks)
    fit = fit_link(points, INSIDE)

    assert fit.efficiency[op].value == pytest.approx(share, rel=0.02)
    assert fit.residuals.p90 < 0.05
    if fit.latency is not None:
        away = abs(np.log(fit.latency.value / (latency_us * 1e-6)))
        assert away < max(0.1, 2.5 * fit.latency.relative_sd)


def test_collectives_share_the_latency_of_their_link() -> None:
    shares = {Collective.ALL_REDUCE: 0.9, Collective.ALL_TO_ALL: 0.5, Collective.ALL_GATHER: 0.7}
    points = [
        one
        for op, share in shares.items()
        for one in curve(ACROSS, op, share=share, latency_s=9e-6, ranks=32, nodes=4)
    ]
    fit = fit_link(points, ACROSS)

    assert fit.latency is not None
    assert fit.latency.value == pytest.approx(9e-6, rel=0.1)
    assert {op: one.value for op, one in fit.efficiency.items()} == pytest.approx(shares, rel=0.02)


def test_a_group_over_the_network_has_the_nics_of_its_node() -> None:
    """Eight 400 Gb/s NICs for eight chips: a ring moves 8 x 50 GB/s over every node."""
    one = point(Collective.ALL_REDUCE, 16, 1e9, 1.0, nodes=2)

    assert group_terms(one, ACROSS)[0] == pytest.approx(8 * ACROSS.link.bytes_per_s)


def test_a_single_large_message_gives_a_bandwidth_and_no_latency() -> None:
    points = curve(INSIDE, Collective.ALL_REDUCE, share=0.8, latency_s=NVLINK.latency_s)[-1:]
    fit = fit_link(points, INSIDE)

    assert fit.latency is None
    assert fit.efficiency[Collective.ALL_REDUCE].value == pytest.approx(0.8, rel=0.01)


def test_far_points_count_less() -> None:
    points = curve(INSIDE, Collective.ALL_REDUCE, share=0.8, latency_s=2e-6)
    spoilt = points[-3]
    points[-3] = point(Collective.ALL_REDUCE, 8, spoilt.payload_bytes, 5.0 * spoilt.seconds)
    fit = fit_link(points, INSIDE)

    assert fit.efficiency[Collective.ALL_REDUCE].value == pytest.approx(0.8, rel=0.06)
    assert fit.residuals.worst == pytest.approx(1 / 5 - 1, abs=0.05)


def test_small_messages_are_left_out_only_where_large_ones_are_enough() -> None:
    points = curve(INSIDE, Collective.ALL_REDUCE, share=0.8, latency_s=2e-6)

    assert min(one.payload_bytes for one in chosen(points)) == LARGE_BYTES
    small = [one for one in points if one.payload_bytes < LARGE_BYTES * 2 ** (FEWEST - 1)]
    assert len(chosen(small)) == len(small)


@pytest.mark.parametrize(
    ("file", "setting", "op", "reached", "tolerance"),
    [
        ("h100_8_all_reduce.txt", INSIDE, Collective.ALL_REDUCE, 479.9e9, 0.08),
        ("polaris_8_all_reduce.txt", None, Collective.ALL_REDUCE, 36.81e9, 0.05),
        ("polaris_8_all_gather.txt", None, Collective.ALL_GATHER, 36.41e9, 0.06),
        ("polaris_8_alltoall.txt", None, Collective.ALL_TO_ALL, 9.36e9, 0.25),
    ],
)
def test_published_curves_end_where_they_were_measured(
    file: str, setting: Setting | None, op: Collective, reached: float, tolerance: float
) -> None:
    """The bandwidth of large messages, against the largest one; the all-to-all slows with size."""
    up = load_link("nvlink3")
    slingshot = Setting(link=load_link("slingshot-200g"), scale_up=False, nics=2, inside=up)
    points = read_measurements([SAMPLES / file]).collectives
    fit = fit_link(points, setting or slingshot)

    assert bus_bytes_per_s(points[-1]) == pytest.approx(reached, rel=0.01)
    assert fit.bus_bytes_per_s[op] == pytest.approx(reached, rel=tolerance)


def test_a_link_that_is_too_slow_for_the_measurement_is_refused() -> None:
    points = curve(INSIDE, Collective.ALL_REDUCE, share=1.0, latency_s=2e-6)
    slow = Setting(link=load_link("pcie3-x16"), scale_up=True)

    with pytest.raises(InputError, match=r"must not exceed 2\.5 times what pcie3-x16 gives"):
        link_profile(points, slow, "x")


def test_text_and_points_agree(tmp_path: Path) -> None:
    times = {size: 2e-5 + size / 2e11 for size in SIZES}
    path = tmp_path / "out.txt"
    path.write_text(nccl_text(times), encoding="utf-8")
    measured = read_measurements([path])

    assert measured.files[0].kind == "nccl-tests all_reduce, 8 ranks on 1 node(s)"
    assert len(measured.collectives) == 2 * len(SIZES)
    assert {p.payload_bytes: p.seconds for p in measured.collectives} == pytest.approx(
        times, rel=1e-3
    )
