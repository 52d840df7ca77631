"""Gradient and parameter synchronisation of a layout, hierarchical over pools and islands.

The replicas of a weight sit in *sides*: groups of ranks in one pool. A reduction runs inside every
side at once, then the sides exchange their shards, each node over the NICs it has towards the
others; the way back mirrors it. (Holmes, arXiv 2312.03549, keeps the first part on RDMA; FlagCX
composes collectives the same way: pre-homogeneous, between, post-homogeneous.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from costmodel import collectives
from costmodel.groups import group_link
from costmodel.hardware.connection import connection
from costmodel.hardware.values import Cluster
from costmodel.model.placement import Collective


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Ranks of one pool that hold the same shard of a weight.

    ranks: how many; stride: chips between two of them; payload_bytes: bytes of the shard on each.
    """

    pool: str
    ranks: int
    stride: int
    payload_bytes: float


def phase_seconds(cluster: Cluster, sides: Sequence[Side], collective: Collective) -> float:
    """Seconds of one half of an all-reduce (reduce-scatter or all-gather) over all sides.

    ``max_i half_i(S_i) + max_i [(k - 1)/k S_i / (n_i beta_i) + alpha]`` with k sides, n_i ranks of
    side i and beta_i the bandwidth of one chip's share towards the slowest other side.
    """
    merged = merge(sides)
    inside = max(_inside_seconds(cluster, side, collective) for side in merged)
    if len(merged) == 1:
        return inside
    return inside + max(_between_seconds(cluster, side, merged, collective) for side in merged)


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


def _inside_seconds(cluster: Cluster, side: Side, collective: Collective) -> float:
    if side.ranks == 1:
        return 0.0
    link = group_link(cluster.pool(side.pool), side.ranks, side.stride, collective)
    return _seconds(collective, side.payload_bytes, side.ranks, link.bytes_per_s, link.latency_s)


def _seconds(
    collective: Collective, payload: float, ranks: int, bytes_per_s: float, latency_s: float
) -> float:
    arrays = (np.asarray(x, dtype=np.float64) for x in (payload, ranks, bytes_per_s, latency_s))
    return float(collectives.seconds(collective, *arrays))


def _between_seconds(
    cluster: Cluster, side: Side, sides: Sequence[Side], collective: Collective
) -> float:
    paths = [connection(cluster, side.pool, other.pool) for other in sides if other is not side]
    rate = min(path.chip_bytes_per_s * path.efficiency[collective.value] for path in paths)
    latency = max(path.latency_s for path in paths)
    share = (len(sides) - 1) / len(sides)
    return share * side.payload_bytes / side.ranks / rate + latency
