"""Which transport joins two pools, and how much of it a node and a chip get."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import UnknownNameError
from costmodel.hardware.connection import HOST_STAGED_FRACTION, SOCKET_EFFICIENCY, connection
from costmodel.hardware.read import load_cluster, load_link
from costmodel.hardware.values import COLLECTIVES, Cluster


def pool(name: str, island: str = "a", **other: Any) -> dict[str, Any]:
    return {
        "name": name,
        "island": island,
        "nodes": 2,
        "chips_per_node": 8,
        "chip": "nvidia-a100-sxm-80g",
        "scale_up": "nvlink3",
        "scale_out": {"link": "infiniband-hdr", "nics": 4},
        **other,
    }


AMD: dict[str, Any] = {"chip": "amd-mi300x", "scale_up": "xgmi-mi300x"}
ROCE: dict[str, Any] = {"scale_out": {"link": "roce-200g", "nics": 8}}
NDR: dict[str, Any] = {"scale_out": {"link": "infiniband-ndr", "nics": 8}}


def cluster(*pools: dict[str, Any], **other: Any) -> Cluster:
    return load_cluster({"name": "test", "pools": list(pools), **other})


def test_one_domain_uses_the_scale_up_link() -> None:
    path = connection(cluster(pool("x")), "x", "x", same_domain=True)
    assert (path.transport, path.links, path.nics) == ("scale-up", ("nvlink3",), 0)
    assert path.chip_bytes_per_s == 300e9
    assert path.node_bytes_per_s == 8 * 300e9


def test_one_pool_shares_its_nics_among_the_chips_of_a_node() -> None:
    shared = connection(cluster(pool("x")), "x", "x")
    assert (shared.transport, shared.nics) == ("verbs-ib", 4)
    assert shared.node_bytes_per_s == 4 * 25e9
    assert shared.chip_bytes_per_s == 4 * 25e9 / 8
    alone = connection(cluster(pool("x")), "x", "x", num_ranks_per_node=1)
    assert alone.chip_bytes_per_s == 25e9


def test_two_speeds_of_one_fabric_meet_at_the_slower() -> None:
    path = connection(cluster(pool("x"), pool("y", **NDR)), "x", "y")
    assert path.transport == "verbs-ib"
    assert path.links == ("infiniband-hdr", "infiniband-ndr")
    assert path.node_bytes_per_s == 4 * 25e9


def test_infiniband_and_roce_of_one_island_are_left_with_sockets() -> None:
    """NCCL #878 (report 123)."""
    path = connection(cluster(pool("x"), pool("y", **ROCE)), "x", "y")
    assert path.transport == "tcp"
    assert path.one_communicator
    assert max(path.efficiency.values()) == SOCKET_EFFICIENCY
    assert path.latency_s > load_link("roce-200g").latency_s
    assert "infiniband and roce" in path.reason


def test_islands_of_infiniband_and_roce_meet_over_ethernet() -> None:
    """NCCL #878 (report 123), as in the bundled hybrid cluster."""
    path = connection(load_cluster("hybrid-64"), "ib", "roce")
    assert (path.transport, path.links, path.nics) == ("tcp", ("ethernet-25g",), 1)
    assert path.node_bytes_per_s == 25e9 / 8
    assert path.chip_bytes_per_s == 25e9 / 8 / 8


@pytest.mark.parametrize("link", ["slingshot-200g", "efa-200g", "omni-path-100g"])
def test_nics_of_two_vendors_do_not_share_a_ring(link: str) -> None:
    """NCCL #1526 (report 125): fabrics that differ never give one verbs communicator."""
    for fabric in ({}, ROCE):
        other: dict[str, Any] = {"scale_out": {"link": link, "nics": 4}}
        path = connection(cluster(pool("x", **fabric), pool("y", **other)), "x", "y")
        assert path.transport == "tcp"


@pytest.mark.parametrize("island", ["a", "b"])
def test_two_vendors_go_through_host_memory(island: str) -> None:
    """RCCL #1220 (report 127): no communicator spans AMD and NVIDIA."""
    mixed = cluster(
        pool("x"),
        pool("y", island, **AMD),
        between_islands={"link": "infiniband-hdr", "nics": 4},
    )
    path = connection(mixed, "x", "y")
    assert path.transport == "host-staged"
    assert not path.one_communicator
    native = load_link("infiniband-hdr").efficiency
    for op in COLLECTIVES:
        assert path.efficiency[op] == pytest.approx(HOST_STAGED_FRACTION * native[op])


def test_verbs_between_islands_join_chips_of_one_vendor() -> None:
    routed = cluster(pool("x"), pool("y", "b"), between_islands={"link": "roce-200g", "nics": 2})
    assert connection(routed, "x", "y").transport == "verbs-roce"


def test_oversubscription_divides() -> None:
    def path(oversubscription: float) -> float:
        between = {"link": "ethernet-100g", "nics": 2, "oversubscription": oversubscription}
        joined = cluster(pool("x"), pool("y", "b"), between_islands=between)
        return connection(joined, "x", "y").node_bytes_per_s

    assert path(4.0) == path(1.0) / 4 == 2 * 12.5e9 / 4


def test_a_pool_that_is_not_there() -> None:
    with pytest.raises(UnknownNameError, match="did you mean ib"):
        connection(load_cluster("hybrid-64"), "ibb", "ib")


@given(
    st.sampled_from([{}, AMD, ROCE, NDR]),
    st.sampled_from([{}, AMD, ROCE, NDR]),
    st.sampled_from(["a", "b"]),
    st.integers(1, 8),
)
def test_laws_of_connections(
    first: dict[str, Any], second: dict[str, Any], island: str, ranks: int
) -> None:
    both = cluster(
        pool("x", **first),
        pool("y", island, **second),
        between_islands={"link": "ethernet-100g", "nics": 1},
    )
    there = connection(both, "x", "y", num_ranks_per_node=ranks)
    back = connection(both, "y", "x", num_ranks_per_node=ranks)
    assert there.node_bytes_per_s == back.node_bytes_per_s
    assert there.chip_bytes_per_s == back.chip_bytes_per_s
    assert there.transport == back.transport
    assert there.chip_bytes_per_s * ranks <= there.node_bytes_per_s * (1 + 1e-12)
    fewer = connection(both, "x", "y", num_ranks_per_node=max(1, ranks - 1))
    assert fewer.chip_bytes_per_s >= there.chip_bytes_per_s


def test_a_mesh_gives_small_groups_few_links() -> None:
    mesh, switch = load_link("xgmi-mi300x"), load_link("nvlink4")
    assert mesh.group_bytes_per_s(2) == pytest.approx(64e9)
    assert mesh.group_bytes_per_s(8) == mesh.bytes_per_s
    assert switch.group_bytes_per_s(2) == switch.bytes_per_s
