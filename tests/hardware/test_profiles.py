"""Every bundled sheet and cluster keeps the promises that its kind makes."""

from __future__ import annotations

import statistics

import pytest

from costmodel.errors import UnknownNumberError
from costmodel.hardware.class_defaults import MATMUL_FRACTION, MEMORY_FRACTION
from costmodel.hardware.read import (
    chip_names,
    cluster_names,
    link_names,
    load_chip,
    load_cluster,
    load_link,
    usual_scale_up,
)
from costmodel.hardware.sheets.read import chip_sheet, link_sheet
from costmodel.hardware.values import COLLECTIVES
from haplan_client.schema.sheet import ChipSheet, LinkSheet, Sourced

NUM_CHIPS = {
    "hybrid-64": 64,
    "dgx-h100-256": 256,
    "a100-v100-256": 256,
    "h100-a800-h20-1024": 1024,
    "ascend910b-c500-1024": 1024,
    "gb200-nvl72-576": 576,
    "mixed-10240": 10_240,
    "mixed-102400": 102_400,
}


def numbers_of(sheet: ChipSheet | LinkSheet) -> list[Sourced]:
    if isinstance(sheet, LinkSheet):
        return [sheet.bandwidth, sheet.latency, *sheet.efficiency.values()]
    scalars = [sheet.memory, sheet.memory_bandwidth, sheet.memory_fraction, sheet.power]
    shares = [*sheet.matmul_fraction.values(), *sheet.attention_fraction.values()]
    return [*scalars, *sheet.peak.values(), *shares]


def assert_every_number_is_sourced(sheet: ChipSheet | LinkSheet) -> None:
    for number in numbers_of(sheet):
        assert number.value in ("unknown", "unsupported") or number.source


@pytest.mark.parametrize("name", chip_names())
def test_chip(name: str) -> None:
    chip = load_chip(name)
    assert_every_number_is_sourced(chip_sheet(name))
    assert chip.name == name
    assert chip.sources
    assert name.startswith(f"{chip.vendor}-")
    assert load_link(usual_scale_up(name), class_defaults=True).kind == "scale-up"
    assert chip.memory_bytes is None or 8e9 < chip.memory_bytes < 400e9
    assert chip.memory_bytes_per_s is None or 2e11 < chip.memory_bytes_per_s < 2e13
    for peak in chip.peak_flop_per_s.values():
        assert peak is None or 5e12 < peak < 2e16
    for fraction in chip.matmul_fraction.values():
        assert fraction is None or 0.4 < fraction <= 1


@pytest.mark.parametrize("name", chip_names())
def test_attention_is_slower_than_products_and_vendor_kernels_are_the_fastest(name: str) -> None:
    chip = load_chip(name, class_defaults=True)
    assert 0.2 < chip.attention_share("portable") <= chip.attention_share("vendor") <= 1.0


@pytest.mark.parametrize("name", ["gb200-186g", "gb300-288g", "b200-sxm-180g", "b300-sxm-288g"])
def test_narrower_products_are_faster_on_blackwell(name: str) -> None:
    chip = load_chip(f"nvidia-{name}", class_defaults=True)
    rates = [chip.peak(p) * chip.matmul_efficiency(p) for p in ("bf16", "fp8", "nvfp4")]
    assert rates == sorted(rates)
    assert rates[2] > 1.5 * rates[1]


@pytest.mark.parametrize("name", chip_names())
def test_a_chip_tells_unknown_numbers_by_their_path(name: str) -> None:
    chip = load_chip(name)
    for precision, peak in chip.peak_flop_per_s.items():
        if peak is None:
            with pytest.raises(UnknownNumberError, match=rf"chips/{name}\.yaml: peak\.{precision}"):
                chip.peak(precision)
        else:
            assert chip.peak(precision) == peak


@pytest.mark.parametrize("name", chip_names())
def test_class_defaults_only_fill_and_say_so(name: str) -> None:
    plain, filled = load_chip(name), load_chip(name, class_defaults=True)
    for precision, peak in plain.peak_flop_per_s.items():
        assert peak is None or filled.peak(precision) == peak
    for precision in plain.unsupported:
        with pytest.raises(UnknownNumberError, match="does not compute in"):
            filled.peak(precision)
    for precision, peak in filled.peak_flop_per_s.items():
        assert peak is None or filled.matmul_efficiency(precision) > 0
    assert filled.memory_fraction is not None


@pytest.mark.parametrize("name", link_names())
def test_link(name: str) -> None:
    link = load_link(name, class_defaults=True)
    assert_every_number_is_sourced(link_sheet(name))
    assert link.name == name
    assert 1e9 <= link.bytes_per_s <= 2e12
    assert 0 < link.latency_s < 1e-4
    assert set(link.efficiency) == set(COLLECTIVES)
    highest = 1.1 if link.multicast else 1
    assert all(0 < value <= highest for value in link.efficiency.values())
    assert (link.transport == "scale-up") == (link.kind == "scale-up")
    assert link.ports == 1 or link.topology == "mesh"


@pytest.mark.parametrize("name", cluster_names())
def test_cluster(name: str) -> None:
    cluster = load_cluster(name)
    assert cluster.name == name
    assert cluster.num_chips == NUM_CHIPS[name] == sum(cluster.chip_counts().values())
    assert load_cluster(cluster.document) == cluster
    num_islands = len(cluster.islands)
    assert len(cluster.between) == num_islands * (num_islands - 1) // 2
    for pool in cluster.pools:
        assert pool.usable_bytes < pool.chip.memory()
        assert pool.matmul_flop_per_s("fp16") < pool.chip.peak("fp16")
        assert pool.scale_up.name == usual_scale_up(pool.chip.name)


def test_all_the_clusters_are_there() -> None:
    assert set(cluster_names()) == set(NUM_CHIPS)


def test_class_defaults_are_the_medians_of_the_measured_chips() -> None:
    chips = [load_chip(name) for name in chip_names()]
    matmul = [f for chip in chips for f in chip.matmul_fraction.values() if f is not None]
    memory = {chip.memory_fraction for chip in chips if chip.memory_fraction is not None}
    assert pytest.approx(statistics.median(matmul), abs=0.005) == MATMUL_FRACTION
    assert pytest.approx(statistics.median(memory), abs=0.005) == MEMORY_FRACTION


@pytest.mark.parametrize(
    ("chips", "lacking"),
    [
        ("nvidia-v100 nvidia-t4", {"bf16", "tf32", "fp8", "mxfp8", "nvfp4"}),
        ("nvidia-a10 nvidia-a100 nvidia-a30 nvidia-a40 nvidia-a800", {"fp8", "mxfp8", "nvfp4"}),
        ("nvidia-l nvidia-rtx-4090 nvidia-h nvidia-gh", {"mxfp8", "nvfp4"}),
        ("nvidia-b nvidia-gb", set[str]()),
        ("amd-mi2", {"tf32", "fp8", "mxfp8", "nvfp4"}),
        ("amd-mi300x amd-mi325x", {"mxfp8", "nvfp4"}),
        ("amd-mi35", {"tf32", "nvfp4"}),
        ("huawei-ascend-910b huawei-ascend-910c", {"fp8", "mxfp8", "nvfp4"}),
        ("huawei-ascend-950", {"nvfp4"}),
    ],
)
def test_formats_that_a_generation_lacks(chips: str, lacking: set[str]) -> None:
    names = [name for name in chip_names() if name.startswith(tuple(chips.split()))]
    assert names
    for name in names:
        assert load_chip(name, class_defaults=True).unsupported == lacking


def test_only_nvidia_has_nvfp4() -> None:
    for name in chip_names():
        chip = load_chip(name)
        assert chip.vendor == "nvidia" or "nvfp4" in chip.unsupported


def test_a_figure_without_a_direction_counts_both() -> None:
    with pytest.raises(UnknownNumberError, match=r"links/metaxlink\.yaml: bandwidth"):
        load_link("metaxlink")
    assert load_link("metaxlink", class_defaults=True).bytes_per_s == 400e9


def test_memory_counts_binary_units() -> None:
    assert load_chip("nvidia-h100-sxm-80g").memory() == 80 * 2**30
