"""Whether tensor-parallel groups fit into scale-up domains, which they should not straddle."""

from collections import Counter
from collections.abc import Mapping

from costmodel.hardware.values import Pool
from costmodel.layout.values import Layout


def chips_used(layout: Layout, pool: str) -> int:
    """Chips of a pool that the layout uses."""
    return sum(pipeline.count * pipeline.chips(pool) for pipeline in layout.pipelines)


def tp_groups(layout: Layout, pool: str) -> Counter[int]:
    """Sizes of the pool's tensor-parallel groups and how many of each there are."""
    groups: Counter[int] = Counter()
    for pipeline in layout.pipelines:
        for stage in pipeline.stages:
            option = stage.option
            if option.pool == pool:
                groups[option.tp] += pipeline.count * option.cp * option.replicas
    return groups


def domains_needed(groups: Mapping[int, int], domain: int) -> int:
    """Scale-up domains of so many chips that these groups need, none straddling without need.

    The largest first, each into the fullest domain that has room: the least number where every
    size divides the next (powers of two), and an attainable one otherwise. Groups wider than a
    domain take whole domains.
    """
    room: Counter[int] = Counter()
    needed = 0
    for size in sorted(groups, reverse=True):
        left = groups[size]
        whole, rest = divmod(size, domain)
        if whole:
            needed += left * whole
            size = rest
        if size == 0:
            continue
        left = _into_room(room, size, left)
        each = domain // size
        full, part = divmod(left, each)
        needed += full + (part > 0)
        room[domain - each * size] += full
        room[domain - part * size] += part > 0
    return needed


def _into_room(room: Counter[int], size: int, left: int) -> int:
    """Puts groups into domains that are in use; returns how many are left over."""
    for free in sorted(r for r in room if r >= size):
        while left and room[free]:
            fit = free // size
            domains = min(room[free], left // fit) or 1
            placed = min(left, domains * fit)
            room[free] -= domains
            room[free - size * (placed // domains)] += domains
            left -= placed
    return left


def domains_of(pool: Pool) -> int:
    """Scale-up domains of a pool."""
    return pool.num_chips // pool.scale_up_domain


def idle_share(tp: int, domain: int) -> int:
    """Chips of a domain that groups of this size leave idle."""
    return domain % tp if tp <= domain else -tp % domain
