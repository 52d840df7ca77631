"""Puts the stages of a layout on nodes.

A tensor- and context-parallel group stays inside one scale-up domain; the copies of one stage in
one pool lie next to each other, so that their gradient sum crosses as few switches as possible.
Larger groups are placed first: with power-of-two groups in power-of-two domains nothing is lost.
"""

from dataclasses import dataclass

from costmodel.hardware.values import Cluster, Pool
from costmodel.layout.values import Layout
from planner.values import NodeTable

Slot = tuple[int, int, int]
"""(pipeline, stage, copy)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """One stage of all copies of a pipeline: ``units`` groups of ``size`` chips for each copy."""

    pipeline: int
    stage: int
    copies: int
    units: int
    size: int


def place(cluster: Cluster, layout: Layout) -> NodeTable | None:
    """Nodes of every stage copy; None when the groups do not pack into the nodes."""
    nodes: dict[Slot, tuple[int, ...]] = {}
    for pool in cluster.pools:
        placed = _place_in_pool(pool, _needs(layout, pool.name))
        if placed is None:
            return None
        nodes |= placed
    return tuple(
        tuple(
            tuple(nodes[d, i, copy] for copy in range(pipeline.count))
            for i in range(len(pipeline.stages))
        )
        for d, pipeline in enumerate(layout.pipelines)
    )


def _needs(layout: Layout, pool: str) -> list[_Need]:
    found = [
        _Need(
            pipeline=d,
            stage=i,
            copies=pipeline.count,
            units=stage.option.replicas,
            size=stage.option.tp * stage.option.cp,
        )
        for d, pipeline in enumerate(layout.pipelines)
        for i, stage in enumerate(pipeline.stages)
        if stage.option.pool == pool
    ]
    return sorted(found, key=lambda n: (-n.size * n.units, -n.size, n.stage, n.pipeline))


def _place_in_pool(pool: Pool, needs: list[_Need]) -> dict[Slot, tuple[int, ...]] | None:
    free = _Domains(pool)
    nodes: dict[Slot, tuple[int, ...]] = {}
    for need in needs:
        for copy in range(need.copies):
            chips = [free.take(need.size) for _ in range(need.units)]
            if any(first is None for first in chips):
                return None
            used = {
                (first + k) // pool.chips_per_node
                for first in chips
                if first is not None
                for k in range(need.size)
            }
            nodes[need.pipeline, need.stage, copy] = tuple(sorted(used))
    return nodes


class _Domains:
    """Free chips of a pool's scale-up domains; groups are taken first fit, in order."""

    def __init__(self, pool: Pool) -> None:
        size = pool.scale_up_domain
        count = pool.num_chips // size
        self.size = size
        self.used = [0] * count
        self.first_open: dict[int, int] = {}

    def take(self, size: int) -> int | None:
        """First chip of a free group of ``size`` chips within one domain."""
        domain = self.first_open.get(size, 0)
        while domain < len(self.used) and self.used[domain] + size > self.size:
            domain += 1
        self.first_open[size] = domain
        if domain == len(self.used):
            return None
        first = domain * self.size + self.used[domain]
        self.used[domain] += size
        return first
