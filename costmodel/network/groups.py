"""Bandwidth that one rank of a process group sees inside one pool."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from costmodel.hardware.values import Pool
from costmodel.model.placement import Collective


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLink:
    """What a group runs over: achievable bytes/s of one rank, one direction, and step latency.

    latency_s: of one step of a ring, the mean of its hops. nodes: scale-up domains that the group
    spans. name: link in the profile.
    """

    bytes_per_s: float
    latency_s: float
    nodes: int
    name: str


SCALE_OUT_HOP = 8.0
"""Latency of a network hop with a large message over that in the sheet, with a mid-size one: fitted
to measured collectives (NCCL's own model has 3.5 for rings and 7 for trees: src/graph/tuning.cc,
Simple over LL128). Inside a domain the messages of a step stay mid-size: 1."""


@lru_cache(maxsize=65536)
def group_link(pool: Pool, ranks: int, stride: int, collective: Collective) -> GroupLink:
    """Link of a group of ``ranks`` chips, ``stride`` chips apart, in consecutive chips of a pool.

    Inside a scale-up domain it is the scale-up link. Beyond, L ranks of the group are in each
    domain. A ring crosses every domain once and shares its NICs with the groups that interleave
    with it: ``min(scale-up, NICs of a node x rate x L / C)`` with C chips in a node (every chip
    belongs to such a group and all communicate at once). Where switches reduce, an all-reduce over
    two domains hands over each sum once, and not 2 (n - 1)/n times as a ring does (389 GB/s over
    NICs of 50 GB/s become 446 to 487 on two nodes of 8 H100, and 718 on B200). In an all-to-all
    every chip sends what leaves its domain over its own share of the NICs; as the payload counts
    (n - 1)/n of it, the bandwidth is that share times ``(n - 1)/(n - L)`` (-4 to +16 % from 256 MB
    on two nodes of 8 B200 and on 8 to 128 A100 nodes of 4).
    """
    span = ranks * stride
    if span <= pool.scale_up_domain:
        share = pool.scale_up.efficiency[collective.value]
        rate = pool.scale_up.group_bytes_per_s(ranks) * share
        return GroupLink(
            bytes_per_s=rate,
            latency_s=step_latency_s(pool, ranks, 0),
            nodes=1,
            name=pool.scale_up.name,
        )
    inside = ranks_in_domain(pool, ranks, stride)
    nodes = ceil(span / pool.scale_up_domain)
    return GroupLink(
        bytes_per_s=_across_domains(pool, ranks, inside, collective),
        latency_s=step_latency_s(pool, ranks, nodes),
        nodes=nodes,
        name=pool.scale_out.name,
    )


def step_latency_s(pool: Pool, ranks: int, crossings: int) -> float:
    """Mean latency of a ring's hops, of which some cross from domain to domain."""
    across = min(crossings, ranks) / ranks
    up = (1.0 - across) * pool.scale_up.latency_s
    return up + across * SCALE_OUT_HOP * pool.scale_out.latency_s


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
    if collective is Collective.ALL_REDUCE and pool.scale_up.multicast and ranks == 2 * inside:
        rate *= 2.0 * (ranks - 1) / ranks
    up = pool.scale_up.group_bytes_per_s(inside) * pool.scale_up.efficiency[collective.value]
    return min(rate, up)


def network_bytes_per_s(pool: Pool, inside: int, collective: Collective) -> float:
    """Bandwidth of one rank over the NICs: ``NICs of a node x rate x efficiency x L / C``.

    inside: L, ranks of the group in one scale-up domain, which may be several nodes of C chips; the
    other groups of the domain use the rest.
    """
    share = pool.scale_out.efficiency[collective.value]
    return pool.scale_out.bytes_per_s * pool.nics * share * inside / pool.chips_per_node
