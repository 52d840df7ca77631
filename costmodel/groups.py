"""Bandwidth that one rank of a process group sees inside one pool."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from costmodel.hardware.values import Pool
from costmodel.model.placement import Collective


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLink:
    """What a group runs over: achievable bytes/s of one rank, one direction, and hop latency.

    nodes: scale-up domains that the group spans. name: link in the profile.
    """

    bytes_per_s: float
    latency_s: float
    nodes: int
    name: str


@lru_cache(maxsize=65536)
def group_link(pool: Pool, ranks: int, stride: int, collective: Collective) -> GroupLink:
    """Link of a group of ``ranks`` chips, ``stride`` chips apart, in consecutive chips of a pool.

    Inside a scale-up domain of S chips it is the scale-up link. Beyond, a ring crosses every
    domain once and shares the node's NICs with the other groups that interleave with it: with L
    of its ranks in a node of C chips the bandwidth is ``min(scale-up, node NICs x L / C)``
    (every chip of the node belongs to such a group and all communicate at once).
    """
    span = ranks * stride
    if span <= pool.scale_up_domain:
        share = pool.scale_up.efficiency[collective.value]
        rate = pool.scale_up.group_bytes_per_s(ranks) * share
        return GroupLink(
            bytes_per_s=rate, latency_s=pool.scale_up.latency_s, nodes=1, name=pool.scale_up.name
        )
    inside = max(1, min(ranks, pool.chips_per_node // stride))
    rate = network_bytes_per_s(pool, inside, collective)
    if inside > 1:
        up = pool.scale_up.group_bytes_per_s(inside) * pool.scale_up.efficiency[collective.value]
        rate = min(rate, up)
    return GroupLink(
        bytes_per_s=rate,
        latency_s=pool.scale_out.latency_s,
        nodes=ceil(span / pool.scale_up_domain),
        name=pool.scale_out.name,
    )


def network_bytes_per_s(pool: Pool, inside: int, collective: Collective) -> float:
    """Bandwidth of one rank over its node's NICs: ``NICs x rate x efficiency x L / C``.

    inside: L, ranks of the group in one node of C chips; the other groups of the node use the rest.
    """
    share = pool.scale_out.efficiency[collective.value]
    return pool.scale_out.bytes_per_s * pool.nics * share * inside / pool.chips_per_node
