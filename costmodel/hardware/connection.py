"""How chips of two pools reach each other: which link, transport and bandwidth.

Rules (reports collected from NCCL #878, #1526 and RCCL #1220): one communicator cannot
span InfiniBand and RoCE over verbs, only over sockets; chips of two vendors cannot share
a communicator of either vendor's library and go through host memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from costmodel.hardware.values import COLLECTIVES, Cluster, Link, Pool

SOCKET_EFFICIENCY = 0.19
"""Share of the NIC rate over kernel sockets where verbs are ruled out: two nodes with two
200 Gb/s NICs each reached 9.45 of 50 GB/s (github.com/argonne-lcf/alcf-nccl-tests, env 1)."""

SOCKET_LATENCY_S = 15e-6
"""Per hop over sockets: in the same tests a small two-node all-reduce took 22 us longer over
sockets than over the fabric's own library, for two hops."""

HOST_STAGED_FRACTION = 0.5
"""Share of a link that is left when every byte is copied to host memory, sent and copied back,
with copy and send taking turns. A default of its class; nobody measured it for these chips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A path between two chips, each direction, before `efficiency`.

    node_bytes_per_s: all NICs of one node on the slower side. chip_bytes_per_s: the share of
    one chip when `num_ranks_per_node` chips of a node send at once. latency_s: per message.
    nics: per node on the side with fewer, 0 for scale-up. efficiency: per collective.
    one_communicator: whether one collective library can span both ends. reason: why this
    transport, for people.
    """

    links: tuple[str, ...]
    transport: str
    node_bytes_per_s: float
    chip_bytes_per_s: float
    latency_s: float
    nics: int
    efficiency: Mapping[str, float] = field(hash=False)
    one_communicator: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    pool: Pool
    link: Link
    nics: int
    num_ranks: int

    @property
    def fabric(self) -> str:
        return self.link.fabric or self.link.transport

    @property
    def node_bytes_per_s(self) -> float:
        return self.link.bytes_per_s * self.nics

    @property
    def chip_bytes_per_s(self) -> float:
        nics_of_a_chip = max(1, math.ceil(self.nics / self.pool.chips_per_node))
        alone = self.link.bytes_per_s * nics_of_a_chip
        return min(alone, self.node_bytes_per_s / self.num_ranks)


@lru_cache(maxsize=4096)
def connection(
    cluster: Cluster,
    pool_a: str,
    pool_b: str,
    *,
    same_domain: bool = False,
    num_ranks_per_node: int | None = None,
) -> Connection:
    """The path between a chip of `pool_a` and a chip of `pool_b`.

    same_domain: both chips share a scale-up link (one node, or one scale-up domain).
    num_ranks_per_node: chips of a node that send over its NICs at once, all by default.
    Raises `UnknownNameError` for a pool that the cluster does not have.
    """
    a, b = cluster.pool(pool_a), cluster.pool(pool_b)
    if same_domain and a.name == b.name:
        return _scale_up(a)
    if a.island != b.island:
        return _between_islands(cluster, a, b, num_ranks_per_node)
    ends = tuple(
        _End(
            pool=p, link=p.scale_out, nics=p.nics, num_ranks=num_ranks_per_node or p.chips_per_node
        )
        for p in (a, b)
    )
    return _over_network(ends)


def _scale_up(pool: Pool) -> Connection:
    link = pool.scale_up
    return Connection(
        links=(link.name,),
        transport=link.transport,
        node_bytes_per_s=link.bytes_per_s * pool.chips_per_node,
        chip_bytes_per_s=link.bytes_per_s,
        latency_s=link.latency_s,
        nics=0,
        efficiency=link.efficiency,
        one_communicator=True,
        reason="chips of one scale-up domain",
    )


def _between_islands(cluster: Cluster, a: Pool, b: Pool, num_ranks: int | None) -> Connection:
    between = cluster.island_link(a.island, b.island)
    ends = tuple(
        _End(pool=p, link=between.link, nics=between.nics, num_ranks=num_ranks or p.chips_per_node)
        for p in (a, b)
    )
    return _over_network(ends, oversubscription=between.oversubscription)


def _over_network(ends: tuple[_End, ...], oversubscription: float = 1.0) -> Connection:
    transport, reason = _transport(ends)
    return Connection(
        links=tuple(dict.fromkeys(end.link.name for end in ends)),
        transport=transport,
        node_bytes_per_s=min(end.node_bytes_per_s for end in ends) / oversubscription,
        chip_bytes_per_s=min(end.chip_bytes_per_s for end in ends) / oversubscription,
        latency_s=_latency_s(ends),
        nics=min(end.nics for end in ends),
        efficiency=_efficiency(ends, transport),
        one_communicator=transport != "host-staged",
        reason=reason,
    )


def _transport(ends: tuple[_End, ...]) -> tuple[str, str]:
    vendors = sorted({end.pool.chip.vendor for end in ends})
    if len(vendors) > 1:
        return "host-staged", f"no collective library spans {' and '.join(vendors)}"
    if not _one_fabric(ends):
        fabrics = sorted({end.fabric for end in ends})
        return "tcp", f"no communicator spans {' and '.join(fabrics)}; sockets remain"
    return ends[0].link.transport, "both ends speak it"


def _latency_s(ends: tuple[_End, ...]) -> float:
    floor = 0.0 if _one_fabric(ends) else SOCKET_LATENCY_S
    return max(floor, *(end.link.latency_s for end in ends))


def _efficiency(ends: tuple[_End, ...], transport: str) -> dict[str, float]:
    ceiling = math.inf if _one_fabric(ends) else SOCKET_EFFICIENCY
    factor = HOST_STAGED_FRACTION if transport == "host-staged" else 1.0
    return {op: factor * min(ceiling, *(e.link.efficiency[op] for e in ends)) for op in COLLECTIVES}


def _one_fabric(ends: tuple[_End, ...]) -> bool:
    return len({end.fabric for end in ends}) == 1
