"""Bandwidth of groups inside and across scale-up domains."""

from dataclasses import replace

import pytest

from costmodel.hardware.read import load_cluster
from costmodel.model.placement import Collective
from costmodel.network.groups import group_link
from tests.costmodel.cases import pool

RING, EXCHANGE = Collective.ALL_REDUCE, Collective.ALL_TO_ALL


def test_a_group_of_one_node_uses_the_scale_up_link() -> None:
    assert group_link(pool("p"), 8, 1, RING).bytes_per_s == pytest.approx(300e9 * 0.8)


def test_a_ring_with_a_whole_node_uses_all_its_nics() -> None:
    """8 NICs of 25 GB/s at 80 %; with one rank a node, an eighth of that."""
    assert group_link(pool("p"), 16, 1, RING).bytes_per_s == pytest.approx(160e9)
    assert group_link(pool("p"), 2, 8, RING).bytes_per_s == pytest.approx(20e9)


@pytest.mark.parametrize("nodes", [2, 4])
def test_an_exchange_is_bound_by_what_each_chip_sends_out(nodes: int) -> None:
    """Of a payload S, (n - L)/n S leaves the node over one chip's NIC."""
    n, payload = 8 * nodes, 1e9
    link = group_link(pool("p", nodes=nodes), n, 1, EXCHANGE)
    seconds = (n - 1) / n * payload / link.bytes_per_s
    assert seconds == pytest.approx((n - 8) / n * payload / 20e9)


def test_a_rack_is_one_domain_of_many_nodes() -> None:
    """Two NVL72 racks: 72 ranks of the ring in each, and the NICs of all their trays."""
    rack = load_cluster("gb200-nvl72-576").pools[0]
    one_tray = replace(rack, scale_up_domain=rack.chips_per_node)
    across = group_link(rack, 144, 1, RING)
    assert across.nodes == 2
    assert across.bytes_per_s > 2.0 * group_link(one_tray, 144, 1, RING).bytes_per_s


def test_two_domains_whose_switches_reduce_hand_over_each_sum_once() -> None:
    """A ring hands over 2 (n - 1)/n of the payload; with three domains the ring stays."""
    plain = pool("p", nodes=3)
    reducing = replace(plain, scale_up=replace(plain.scale_up, bytes_per_s=1e12, multicast=True))
    wide = replace(reducing, scale_up=replace(reducing.scale_up, multicast=False))
    for n, gain in ((16, 2.0 * 15 / 16), (24, 1.0)):
        one, other = (group_link(p, n, 1, RING).bytes_per_s for p in (reducing, wide))
        assert one == pytest.approx(gain * other)


def test_hops_inside_a_domain_are_shorter_than_those_between() -> None:
    near, far = (group_link(pool("p"), 2, stride, RING).latency_s for stride in (1, 8))
    mixed = group_link(pool("p"), 16, 1, RING).latency_s
    assert near < mixed < far
