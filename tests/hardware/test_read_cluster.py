"""What a user may write in a cluster file, and what comes back when it is wrong."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest

from costmodel.errors import (
    InputError,
    UnknownNameError,
    UnknownNumberError,
    UnsafeDocumentError,
)
from costmodel.hardware.assumptions import assumptions_for, whole
from costmodel.hardware.read import load_cluster
from costmodel.hardware.values import Pool
from costmodel.safe_document import load_document

POOL: dict[str, Any] = {
    "name": "x",
    "nodes": 2,
    "chips_per_node": 8,
    "chip": "nvidia-a100-sxm-80g",
    "scale_up": "nvlink3",
    "scale_out": {"link": "infiniband-hdr", "nics": 4},
}


def document(*changes: dict[str, Any], **other: Any) -> dict[str, Any]:
    pools = [copy.deepcopy(POOL) | change for change in changes or ({},)]
    return {"name": "test", "pools": pools, **other}


def read_pool(**changes: Any) -> Pool:
    return load_cluster(document(changes)).pools[0]


def violations(source: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        load_cluster(source)
    return {v.field: str(v) for v in caught.value.violations}


def test_overrides_replace_any_number() -> None:
    chip = {
        "memory": "96 GB",
        "memory_bandwidth": "3 TB/s",
        "memory_fraction": 0.9,
        "peak": {"fp8": "500 TFLOP/s"},
        "matmul_fraction": {"fp8": 0.6},
    }
    scale_up = {
        "bandwidth": "450 GB/s",
        "latency": "1 us",
        "efficiency": {"p2p": 0.5},
        "topology": "mesh",
        "multicast": True,
        "ports": 7,
    }
    overrides = {"chip": chip, "scale_up": scale_up, "scale_out": {"bandwidth": "100 Gb/s"}}
    pool = read_pool(overrides=overrides)
    assert pool.chip.memory() == 96e9
    assert pool.chip.streaming_bytes_per_s() == 2.7e12
    assert pool.matmul_flop_per_s("fp8") == 300e12
    assert pool.chip.peak("bf16") == 312e12
    assert pool.scale_up.bytes_per_s == 450e9
    assert pool.scale_up.group_bytes_per_s(2) == pytest.approx(450e9 / 7)
    assert pool.scale_up.latency_s == 1e-6
    assert pool.scale_up.efficiency["p2p"] == 0.5
    assert pool.scale_up.multicast
    assert pool.scale_out.bytes_per_s == 12.5e9


def test_an_override_supplies_what_nobody_published() -> None:
    ada = {"chip": "nvidia-l4", "scale_up": "pcie4-x8"}
    with pytest.raises(UnknownNumberError, match="class_defaults") as caught:
        read_pool(**ada).matmul_flop_per_s("fp8")
    assert 'overrides: {chip: {peak: {fp8: "312 TFLOP/s"}}}' in str(caught.value)
    chip = {"peak": {"fp8": "312 TFLOP/s"}, "matmul_fraction": {"fp8": 0.75}}
    assert read_pool(**ada, overrides={"chip": chip}).matmul_flop_per_s("fp8") == 234e12


def test_a_precision_that_the_chip_lacks_names_the_pool_and_a_way_out() -> None:
    measured = {"throughput": "140 TFLOP/s"}
    for pool in (read_pool(), read_pool(measured=measured)):
        with pytest.raises(UnknownNumberError) as caught:
            pool.matmul_flop_per_s("fp8")
        assert str(caught.value) == (
            "pool x, chips/nvidia-a100-sxm-80g.yaml: peak.fp8: NVIDIA A100 SXM4 80GB does not "
            "compute in fp8, got 'unsupported'; choose the precision fp32 or fp16 or bf16, or "
            "leave out the pool"
        )


def test_a_cluster_without_the_precision_names_every_pool() -> None:
    cluster = load_cluster("hybrid-64")
    cluster.check_computes_in("bf16")
    with pytest.raises(UnknownNumberError) as caught:
        cluster.check_computes_in("fp8")
    assert [v.field.split(",")[0] for v in caught.value.violations] == ["pool ib", "pool roce"]
    load_cluster("h100-a800-h20-1024").check_computes_in("fp8")


def test_unknown_number_of_a_link_is_found_on_reading() -> None:
    metax = {"chip": "metax-c500", "scale_up": "metaxlink"}
    assert "links/metaxlink.yaml: bandwidth" in violations(document(metax))
    own = {"overrides": {"scale_up": {"bandwidth": "100 GB/s"}}}
    assert read_pool(**metax, **own).scale_up.bytes_per_s == 100e9


def listing(source: dict[str, Any]) -> str:
    cluster = load_cluster(source)
    return "\n".join(assumptions_for(cluster, whole(cluster)))


def test_class_defaults_are_listed_and_overrides_are_not() -> None:
    metax = {"chip": "metax-c500", "scale_up": "metaxlink"}
    listed = listing(document(metax, class_defaults=True))
    assert "chip metax-c500 (pool x): matmul_fraction = 0.7 for" in listed
    assert "link metaxlink (pool x): bandwidth = 400 GB/s (class default)" in listed
    own = {"scale_up": {"bandwidth": "100 GB/s", "latency": "2 us"}}
    listed = listing(document(metax | {"overrides": own}, class_defaults=True))
    assert "link metaxlink (pool x): bandwidth" not in listed
    assert "link metaxlink (pool x): latency" not in listed


def test_measured_values_win_over_the_sheet() -> None:
    assert read_pool().matmul_flop_per_s("bf16") == pytest.approx(312e12 * 0.822)
    assert read_pool(measured={"efficiency": 0.5}).matmul_flop_per_s("bf16") == 156e12
    measured = read_pool(measured={"throughput": "140 TFLOP/s"})
    assert measured.matmul_flop_per_s("fp16") == 140e12


def test_everything_else_of_a_pool() -> None:
    pool = read_pool(
        price_per_chip_hour="2.5 USD",
        memory_margin=0.8,
        node_names=["n1", "n2"],
        scale_up_domain=16,
    )
    assert pool.price_per_chip_hour == 2.5
    assert pool.usable_bytes == pytest.approx(0.8 * 80 * 2**30)
    assert pool.node_names == ("n1", "n2")
    assert pool.scale_up_domain == 16
    assert read_pool().scale_up_domain == 8


def test_all_violations_come_at_once() -> None:
    found = violations(
        document(
            {"nodes": "3", "chip": "nvidia-a100-sxm-80", "chips_per_nod": 8},
            {"price_per_chip_hour": 2.5, "scale_out": {"link": "infiniband-hdd", "nics": 0}},
            colour="blue",
        )
    )
    assert "whole number" in found["/pools/0/nodes"]
    assert "did you mean chips_per_node?" in found["/pools/0/chips_per_nod"]
    assert "nvidia-a100-sxm-80g" in found["/pools/0/chip"]
    assert '"2.5 USD"' in found["/pools/1/price_per_chip_hour"]
    assert "did you mean infiniband-hdr" in found["/pools/1/scale_out/link"]
    assert "/pools/1/scale_out/nics" in found
    assert "/colour" in found


def test_all_violations_of_the_second_kind_come_at_once() -> None:
    chip = {"memory": "8 us", "peak": {"bf16": "0 TFLOP/s"}}
    found = violations(
        document(
            {"overrides": {"chip": chip}, "node_names": ["n1"], "scale_up_domain": 12},
            {"island": "b", "scale_up": "infiniband-hdr", "price_per_chip_hour": "2 GB"},
            {
                "name": "z",
                "measured": {"efficiency": 0.5, "throughput": "1 TFLOP/s"},
                "scale_out": {"link": "nvlink3", "nics": 1},
                "node_names": ["n1", "n1"],
            },
        )
    )
    assert set(found) == {
        "/pools/0/overrides/chip/memory",
        "/pools/0/overrides/chip/peak/bf16",
        "/pools/0/node_names",
        "/pools/0/scale_up_domain",
        "/pools/0/name",
        "/pools/1/name",
        "/pools/1/scale_up",
        "/pools/1/price_per_chip_hour",
        "/pools/2/measured",
        "/pools/2/scale_out/link",
        "/pools/2/node_names",
        "/between_islands",
    }


def test_a_text_in_place_of_fields_is_told_the_fields() -> None:
    found = violations(document({"scale_out": "infiniband-hdr"}))

    assert "must be fields with values" in found["/pools/0/scale_out"]
    assert "`{link: ..., nics: ...}`" in found["/pools/0/scale_out"]


def test_every_message_is_one_readable_line() -> None:
    found = violations(document({"chip": "x" * 150, "nodes": [1] * 500}))
    assert all("\n" not in line and len(line) < 300 for line in found.values())


@pytest.mark.parametrize(
    "between",
    [
        [{"islands": ["a", "b"], "link": "ethernet-25g"}],
        [{"islands": ["a", "x"], "link": "ethernet-25g"}, {"link": "ethernet-25g"}],
        [{"islands": ["a", "a"], "link": "ethernet-25g"}, {"link": "ethernet-25g"}],
        [{"islands": ["a", "b"], "link": "ethernet-25g"}] * 2 + [{"link": "ethernet-25g"}],
        {"link": "nvlink3"},
        {"link": "ethernet-25g", "oversubscription": 0.5},
        None,
    ],
)
def test_islands_that_are_not_joined_properly(between: object) -> None:
    islands = [{"name": name, "island": name} for name in "abc"]
    found = violations(document(*islands, between_islands=between))
    assert all(field.startswith("/between_islands") for field in found)


def test_a_pair_may_have_its_own_link() -> None:
    islands = [{"name": name, "island": name} for name in "abc"]
    between = [
        {"link": "ethernet-25g"},
        {"islands": ["c", "a"], "link": "roce-200g", "nics": 2, "oversubscription": 2},
    ]
    cluster = load_cluster(document(*islands, between_islands=between))
    assert cluster.island_link("a", "b").link.name == "ethernet-25g"
    own = cluster.island_link("a", "c")
    assert (own.link.name, own.nics, own.oversubscription) == ("roce-200g", 2, 2.0)


def test_the_document_reproduces_the_cluster(tmp_path: Path) -> None:
    source = document(
        {"overrides": {"chip": {"memory": "96 GB"}}, "measured": {"efficiency": 0.5}},
        {"name": "y", "island": "b", "node_names": ["n1", "n2"]},
        between_islands={"link": "ethernet-25g"},
        class_defaults=True,
    )
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps(source))
    cluster = load_cluster(path)
    assert load_cluster(str(path)) == cluster
    assert load_cluster(source) == cluster
    assert load_cluster(cluster.document) == cluster
    assert hash(load_cluster(cluster.document)) == hash(cluster)


def test_a_bundled_name_with_a_typo() -> None:
    with pytest.raises(UnknownNameError, match="did you mean hybrid-64"):
        load_cluster("hybrid-65")


def test_a_hostile_file_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("a: &a [x]\nb: *a")
    begin = time.process_time()
    with pytest.raises(UnsafeDocumentError):
        load_cluster(path)
    assert time.process_time() - begin < 0.5


def test_the_example_of_the_documentation_reads() -> None:
    page = Path(__file__).parents[2] / "docs" / "clusters.md"
    example = page.read_text().split("```yaml\n")[1].split("```")[0]
    cluster = load_cluster(load_document(example))
    assert cluster.num_chips == 48
    assert cluster.pool("new").matmul_flop_per_s("bf16") == pytest.approx(0.85 * 148e12)


def test_a_name_too_long_for_any_file_is_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError):
        load_cluster("x" * 10_000)
