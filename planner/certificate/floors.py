"""Least seconds that gradient sums and parameter gathers take, per byte of a stage's shard.

``costmodel.network.phases`` gives a ring with n ranks ``(n - 1)/n S / rate`` and, with k > 1
rings, ``(k - 1)/k S / (n rate)`` more. What a layout has there is not known while pipelines are
priced one by one; the floor is the least over everything that at least so many pipelines allow.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from costmodel.hardware.connection import connection
from costmodel.hardware.values import Cluster, Pool
from costmodel.model.placement import Collective
from costmodel.network.groups import network_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ranks of one stage that share a weight, chips between two of them, pipelines at least."""

    ranks: int
    stride: int
    pipelines: int


@lru_cache(maxsize=65536)
def seconds_per_byte(cluster: Cluster, pool: str, group: Group, collective: Collective) -> float:
    """Floor of one half of an all-reduce over the payload bytes; 0 when one rank may be alone.

    One ring has room for all ranks, or there are several and the own one has any size.
    """
    own = cluster.pool(pool)
    inside = max(1, own.scale_up_domain // group.stride)
    slow = network_bytes_per_s(own, inside, collective)
    fast = max(slow, _scale_up_rate(own, inside, collective))
    total = group.ranks + group.pipelines - 1
    between = _fastest_exchange(cluster, pool, collective)
    room = max(group.ranks, own.num_chips // group.stride)
    n = np.arange(group.ranks, (max(room, total) if between is None else room) + 1)
    ring = (1.0 - 1.0 / n) / np.where(n <= inside, fast, slow)
    alone = float(ring[n >= total].min(initial=np.inf))
    if between is None:
        return alone
    return min(alone, float((ring + 0.5 / (n * between)).min()))


def _scale_up_rate(pool: Pool, inside: int, collective: Collective) -> float:
    rates = (pool.scale_up.group_bytes_per_s(n) for n in range(1, inside + 1))
    return max(rates) * pool.scale_up.efficiency[collective.value]


@lru_cache(maxsize=4096)
def _fastest_exchange(cluster: Cluster, pool: str, collective: Collective) -> float | None:
    """Highest rate of one chip towards a ring of another pool; None without other pools."""
    paths = [connection(cluster, pool, other.name) for other in cluster.pools if other.name != pool]
    return max((p.chip_bytes_per_s * p.efficiency[collective.value] for p in paths), default=None)
