"""Rules on the chips that a layout takes."""

from collections.abc import Iterator

from costmodel.errors import UnknownNameError, Violation
from costmodel.layout.packing import chips_used, domains_needed, domains_of, tp_groups
from costmodel.layout.rule_tools import places
from costmodel.layout.values import Layout
from costmodel.problem import Problem


def known_pool(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Every stage names a pool of the cluster."""
    known = [pool.name for pool in problem.cluster.pools]
    for place in places(layout):
        if place.option.pool not in known:
            yield from UnknownNameError(
                kind="pool", name=place.option.pool, known=known, field=f"{place.path}/pool"
            ).violations


def chips_available(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """No pool gives more chips than it has."""
    for pool in problem.cluster.pools:
        used = chips_used(layout, pool.name)
        if used > pool.num_chips:
            yield Violation(
                field="/pipelines",
                value=f"{used} chips of pool {pool.name}",
                rule=f"must use at most the {pool.num_chips} chips of pool {pool.name}",
                fix=_fewer(layout, pool.name, pool.num_chips),
            )


def _fewer(layout: Layout, pool: str, available: int) -> str:
    users = [p for p in layout.pipelines if p.chips(pool)]
    each = min(p.chips(pool) for p in users)
    if each > available:
        return f"a pipeline of {each} chips does not fit: lower tp, replicas or the stages there"
    return f"run at most {available // each} pipelines of {each} chips there"


def groups_pack(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Tensor-parallel groups pack into the pool's scale-up domains without straddling."""
    for pool in problem.cluster.pools:
        groups = tp_groups(layout, pool.name)
        needed, available = domains_needed(groups, pool.scale_up_domain), domains_of(pool)
        if needed > available and chips_used(layout, pool.name) <= pool.num_chips:
            sizes = ", ".join(f"{n} of {size}" for size, n in sorted(groups.items()))
            yield Violation(
                field="/pipelines",
                value=f"tp groups {sizes} in pool {pool.name}",
                rule=f"must pack into {available} domains of {pool.scale_up_domain} chips each",
                fix=f"use tp that divides {pool.scale_up_domain}, or fewer pipelines there",
            )


POOL_RULES = (known_pool, chips_available, groups_pack)
