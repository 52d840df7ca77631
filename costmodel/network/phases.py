"""Gradient and parameter synchronisation of a layout, hierarchical over pools and islands.

The replicas of a weight sit in *sides*: groups of ranks in one pool. Sides that one collective
library can join over RDMA form a *ring*. A reduction runs inside every ring at once, then the rings
exchange their shards, each node over the NICs it has towards the others; the way back mirrors it.
(Holmes, arXiv 2312.03549, keeps the first part on RDMA; FlagCX composes collectives the same way:
pre-homogeneous, between, post-homogeneous.)
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from costmodel.hardware.connection import connection
from costmodel.hardware.values import Cluster
from costmodel.model.placement import Collective
from costmodel.network import collectives
from costmodel.network.groups import (
    GroupLink,
    group_link,
    network_bytes_per_s,
    ranks_in_domain,
    step_latency_s,
)

RDMA = ("verbs-ib", "verbs-roce")


class Side(NamedTuple):
    """Ranks of one pool that hold the same shard of a weight.

    ranks: how many; stride: chips between two of them; payload_bytes: bytes of the shard on each.
    """

    pool: str
    ranks: int
    stride: int
    payload_bytes: float


def phase_seconds(
    cluster: Cluster, sides: Sequence[Side], collective: Collective
) -> Mapping[str, float]:
    """Seconds that each pool is busy with one half of an all-reduce over all sides.

    A half is a reduce-scatter or an all-gather. Pool i needs ``half(S_i)`` in its ring (the
    slowest of the ring's pools) plus, with k > 1 rings, ``(k - 1)/k S_i / (n beta_i) + alpha``: its
    share of the shard over beta_i, the bandwidth of one chip towards the slowest other ring; n
    counts the ring's ranks.
    """
    return _phase_seconds(cluster, tuple(sides), collective)


@lru_cache(maxsize=16384)
def _phase_seconds(
    cluster: Cluster, sides: tuple[Side, ...], collective: Collective
) -> Mapping[str, float]:
    rings = joined_rings(cluster, merge(sides))
    busy: dict[str, float] = {}
    for ring in rings:
        inside = _ring_seconds(cluster, ring, collective)
        others = [side for other in rings if other is not ring for side in other]
        for side in ring:
            exchange = _exchange_seconds(cluster, side, ring, others, len(rings), collective)
            busy[side.pool] = inside + exchange
    return MappingProxyType(busy)


def merge(sides: Iterable[Side]) -> tuple[Side, ...]:
    """Sides of the same pool joined into one ring; its payload is the largest, its stride too."""
    by_pool: dict[str, Side] = {}
    for side in sides:
        known = by_pool.get(side.pool)
        by_pool[side.pool] = side if known is None else _joined(known, side)
    return tuple(by_pool.values())


def _joined(a: Side, b: Side) -> Side:
    return Side(
        pool=a.pool,
        ranks=a.ranks + b.ranks,
        stride=max(a.stride, b.stride),
        payload_bytes=max(a.payload_bytes, b.payload_bytes),
    )


def joined_rings(cluster: Cluster, sides: Sequence[Side]) -> tuple[tuple[Side, ...], ...]:
    """Sides grouped by what one communicator can span over RDMA."""
    rings: list[list[Side]] = []
    for side in sides:
        for ring in rings:
            if connection(cluster, ring[0].pool, side.pool).transport in RDMA:
                ring.append(side)
                break
        else:
            rings.append([side])
    return tuple(tuple(ring) for ring in rings)


def _ring_seconds(cluster: Cluster, ring: tuple[Side, ...], collective: Collective) -> float:
    ranks = sum(side.ranks for side in ring)
    if ranks == 1:
        return 0.0
    return max(_side_seconds(cluster, side, ring, ranks, collective) for side in ring)


def _side_seconds(
    cluster: Cluster, side: Side, ring: tuple[Side, ...], ranks: int, collective: Collective
) -> float:
    link = _ring_link(cluster, side, alone=len(ring) == 1, collective=collective)
    numbers = (side.payload_bytes, ranks, link.bytes_per_s, link.latency_s)
    arrays = (np.asarray(x, dtype=np.float64) for x in numbers)
    return float(collectives.seconds(collective, *arrays))


def _ring_link(cluster: Cluster, side: Side, *, alone: bool, collective: Collective) -> GroupLink:
    pool = cluster.pool(side.pool)
    link = group_link(pool, side.ranks, side.stride, collective)
    if alone:
        return link
    inside = ranks_in_domain(pool, side.ranks, side.stride)
    rate = network_bytes_per_s(pool, inside, collective)
    return GroupLink(
        bytes_per_s=min(rate, link.bytes_per_s) if side.ranks > 1 else rate,
        latency_s=max(link.latency_s, step_latency_s(pool, side.ranks, link.nodes)),
        nodes=link.nodes + 1,
        name=pool.scale_out.name,
    )


def _exchange_seconds(
    cluster: Cluster,
    side: Side,
    ring: tuple[Side, ...],
    others: Sequence[Side],
    num_rings: int,
    collective: Collective,
) -> float:
    if not others:
        return 0.0
    paths = [connection(cluster, side.pool, other.pool) for other in others]
    rate = min(path.chip_bytes_per_s * path.efficiency[collective.value] for path in paths)
    latency = max(path.latency_s for path in paths)
    ranks = sum(member.ranks for member in ring)
    share = (num_rings - 1) / num_rings
    return share * side.payload_bytes / ranks / rate + latency
