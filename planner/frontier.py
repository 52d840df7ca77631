"""Step time against cost and chips: the best plans on parts of a cluster.

A part keeps some pools, each with a share of its nodes. Cost counts the chips that a layout uses,
at the prices of their pools; chips that idle cost nothing here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from costmodel.errors import InputError, Violation
from costmodel.hardware.values import Cluster
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from costmodel.step import EVALUATOR_VERSION
from planner.instance import layout_of
from planner.kernels import make_ready
from planner.pricing import priced
from planner.space import declare
from planner.subclusters import with_nodes
from planner.target_search import chosen, outcomes
from planner.targets.registry import ANY, check_target
from planner.watch import Watch
from planner.wishes import NO_WISHES, Wishes

OBJECTIVES = ("time", "cost", "chips")
SHARES = (1.0, 0.75, 0.5, 0.25, 0.125)
"""Of the nodes of every pool that is kept."""

MOST_SUBSETS = 4
"""Pools up to which every set of them is tried; above, all, all but one, and single ones."""

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One part of the cluster and the best layout on it.

    nodes: by pool. cost_per_token: in the currency of the prices; None where a price is missing.
    """

    nodes: dict[str, int]
    chips: int
    step_time_s: float
    tokens_per_s: float
    cost_per_token: float | None
    target: str


def price_per_hour(cluster: Cluster, layout: Layout) -> float | None:
    """``sum over stages of count x chips x price``; None when a pool in use has no price."""
    total = 0.0
    for pipeline in layout.pipelines:
        for stage in pipeline.stages:
            price = cluster.pool(stage.option.pool).price_per_chip_hour
            if price is None:
                return None
            total += pipeline.count * stage.option.num_chips * price
    return total


def missing_prices(cluster: Cluster) -> tuple[Violation, ...]:
    """Pools whose price the objective needs."""
    return tuple(
        Violation(
            field=f"/cluster/pools/{k}/price_per_chip_hour",
            value="nothing",
            rule="is needed to tell what a plan costs",
            fix="give the pool a price_per_chip_hour",
        )
        for k, pool in enumerate(cluster.pools)
        if pool.price_per_chip_hour is None
    )


def parts(cluster: Cluster) -> Iterator[Cluster]:
    """The parts that are looked at, each once; the whole cluster first."""
    seen: set[tuple[tuple[str, int], ...]] = set()
    for share in SHARES:
        for kept in _subsets([pool.name for pool in cluster.pools]):
            nodes = {
                p.name: range(max(1, round(p.nodes * share)))
                for p in cluster.pools
                if p.name in kept
            }
            key = tuple((name, len(left)) for name, left in nodes.items())
            if key not in seen:
                seen.add(key)
                yield with_nodes(cluster, nodes)


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    n = len(names)
    sizes = range(n, 0, -1) if n <= MOST_SUBSETS else sorted({n, n - 1, 1}, reverse=True)
    return [kept for size in sizes for kept in combinations(names, size)]


def points(
    problem: Problem, *, target: str, time_limit_s: float, wishes: Wishes = NO_WISHES
) -> tuple[Point, ...]:
    """The best plan on every part that has one; each part gets an equal share of the time."""
    make_ready()
    check_target(target)
    smaller = list(parts(problem.cluster))
    each = time_limit_s / len(smaller)
    found = (
        _point(replace(problem, cluster=part), target, each, wishes)
        for part in smaller
        if _computes(part, problem.job.precision)
    )
    return tuple(point for point in found if point is not None)


def _computes(cluster: Cluster, precision: str) -> bool:
    return any(precision not in pool.chip.unsupported for pool in cluster.pools)


def _point(problem: Problem, target: str, limit_s: float, wishes: Wishes) -> Point | None:
    model, cluster, job = problem.model, problem.cluster, problem.job
    space = declare(model, cluster, job, target=ANY, evaluator=EVALUATOR_VERSION)
    if not space.options:
        return None
    everything = priced(problem, space)
    tried = outcomes(
        problem, everything, target, Watch(limit_s=limit_s), replace(wishes, prove_s=0.0)
    )
    best = chosen(tried)
    if best.best is None:
        return None
    layout, step_s = layout_of(best.instance, best.best.draft), best.step_time_s
    tokens = job.global_batch_size * job.sequence_length
    price = price_per_hour(cluster, layout)
    return Point(
        nodes={pool.name: pool.nodes for pool in cluster.pools},
        chips=layout.num_chips,
        step_time_s=step_s,
        tokens_per_s=tokens / step_s,
        cost_per_token=None if price is None else price / HOUR_S * step_s / tokens,
        target=best.target.label,
    )


def front(found: Sequence[Point]) -> tuple[Point, ...]:
    """Points that no other one beats in time, cost and chips together; the fastest first."""
    kept = [p for p in found if not any(_beats(q, p) for q in found)]
    distinct = {_goals(p): p for p in reversed(kept)}
    return tuple(sorted(distinct.values(), key=lambda p: (p.step_time_s, p.chips)))


def _goals(point: Point) -> tuple[float, float, int]:
    cost = point.cost_per_token
    return point.step_time_s, 0.0 if cost is None else cost, point.chips


def _beats(one: Point, other: Point) -> bool:
    a, b = _goals(one), _goals(other)
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def best_point(
    found: Sequence[Point], objective: str, *, tokens: float = 0.0, deadline_s: float = 0.0
) -> Point | None:
    """The point that an objective asks for; None when none meets the deadline.

    time: the fastest. cost: the cheapest per token. chips: the fewest with which ``tokens`` take at
    most ``deadline_s``.
    """
    if objective == "time":
        return min(found, key=lambda p: p.step_time_s, default=None)
    if objective == "cost":
        known = [p for p in found if p.cost_per_token is not None]
        return min(known, key=lambda p: (p.cost_per_token or 0.0, p.step_time_s), default=None)
    timely = [p for p in found if tokens / p.tokens_per_s <= deadline_s]
    return min(timely, key=lambda p: (p.chips, p.step_time_s), default=None)


def check_prices(cluster: Cluster) -> None:
    """Raises InputError for every pool without a price."""
    faults = missing_prices(cluster)
    if faults:
        raise InputError(faults)
