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

    Inside a scale-up domain it is the scale-up link. Beyond, L ranks of the group are in each
    domain. A ring crosses every domain once and shares its NICs with the groups that interleave
    with it: ``min(scale-up, NICs of a node x rate x L / C)`` with C chips in a node (every chip
    belongs to such a group and all communicate at once). In an all-to-all every chip sends what
    leaves its domain over its own share of the NICs; as the payload counts (n - 1)/n of it, the
    bandwidth is that share times ``(n - 1)/(n - L)`` (-4 to +16 % from 256 MB on two nodes of 8
    B200 and on 8 to 128 A100 nodes of 4).
    """
    span = ranks * stride
    if span <= pool.scale_up_domain:
        share = pool.scale_up.efficiency[collective.value]
        rate = pool.scale_up.group_bytes_per_s(ranks) * share
        return GroupLink(
            bytes_per_s=rate, latency_s=pool.scale_up.latency_s, nodes=1, name=pool.scale_up.name
        )
    inside = ranks_in_domain(pool, ranks, stride)
    return GroupLink(
        bytes_per_s=_across_domains(pool, ranks, inside, collective),
        latency_s=pool.scale_out.latency_s,
        nodes=ceil(span / pool.scale_up_domain),
        name=pool.scale_out.name,
    )


def ranks_in_domain(pool: Pool, ranks: int, stride: int) -> int:
    """Ranks of a group, ``stride`` chips apart, that one scale-up domain holds; at least 1."""
    return max(1, min(ranks, pool.scale_up_domain // stride))


def _across_domains(pool: Pool, ranks: int, inside: int, collective: Collective) -> float:
    if collective is Collective.ALL_TO_ALL:
        alone = network_bytes_per_s(pool, 1, collective)
        return alone * (ranks - 1) / max(ranks - inside, 1)
    rate = network_bytes_per_s(pool, inside, collective)
    if inside == 1:
        return rate
    up = pool.scale_up.group_bytes_per_s(inside) * pool.scale_up.efficiency[collective.value]
    return min(rate, up)


def network_bytes_per_s(pool: Pool, inside: int, collective: Collective) -> float:
    """Bandwidth of one rank over the NICs: ``NICs of a node x rate x efficiency x L / C``.

    inside: L, ranks of the group in one scale-up domain, which may be several nodes of C chips; the
    other groups of the domain use the rest.
    """
    share = pool.scale_out.efficiency[collective.value]
    return pool.scale_out.bytes_per_s * pool.nics * share * inside / pool.chips_per_node
