"""Plans for another objective than the step time, and the front of all of them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import planner
from costmodel.problem import Problem
from planner.frontier import Point, best_point, check_prices, front, points
from planner.subclusters import with_nodes
from planner.wishes import Wishes
from service.outcomes import InfeasibleError, TimeLimitError
from service.wishes import Asked

Document = dict[str, Any]
Progress = Callable[[float, float | None], None]

FRONT_SCHEMA = "haplan.front/v1"
LOOKING = 0.5
"""Share of the time in which parts of the cluster are compared; the rest goes to the plan."""


def planned(
    problem: Problem,
    asked: Asked,
    wishes: Wishes,
    *,
    target: str,
    time_limit_s: float,
    progress: Progress | None,
) -> planner.Plan:
    """The plan that the objective asks for."""
    warnings: tuple[str, ...] = ()
    if asked.objective != "time":
        part = _part(problem, asked, wishes, target, LOOKING * time_limit_s)
        problem, warnings = part
        time_limit_s *= 1 - LOOKING
    found = planner.plan(
        problem.model,
        problem.cluster,
        problem.job,
        target=target,
        time_limit_s=time_limit_s,
        progress=progress,
        wishes=wishes,
    )
    return replace(found, warnings=(*warnings, *found.warnings)) if warnings else found


def _part(
    problem: Problem, asked: Asked, wishes: Wishes, target: str, limit_s: float
) -> tuple[Problem, tuple[str, ...]]:
    """The problem on the part of the cluster that meets the objective best, and what to say."""
    if asked.objective == "cost":
        check_prices(problem.cluster)
    found = points(problem, target=target, time_limit_s=limit_s, wishes=wishes)
    best = best_point(
        found, asked.objective, tokens=asked.tokens or 0.0, deadline_s=asked.deadline_s
    )
    if best is None and found:
        raise InfeasibleError(_too_late(found, asked))
    if best is None:
        raise TimeLimitError("no part of the cluster has a plan yet; allow more time")
    kept = {name: range(nodes) for name, nodes in best.nodes.items()}
    cluster = with_nodes(
        problem.cluster, {p.name: kept.get(p.name, ()) for p in problem.cluster.pools}
    )
    said = f"objective {asked.objective}: best of {len(found)} parts of the cluster, {_nodes(best)}"
    return replace(problem, cluster=cluster), (said,)


def _too_late(found: Sequence[Point], asked: Asked) -> str:
    fastest = max(point.tokens_per_s for point in found)
    hours = (asked.tokens or 0.0) / fastest / 3600.0
    return f"no plan meets the deadline: the fastest takes {hours:.4g} hours"


def _nodes(point: Point) -> str:
    return ", ".join(f"{nodes} nodes of {name}" for name, nodes in point.nodes.items())


def front_document(
    problem: Problem, wishes: Wishes, *, target: str, time_limit_s: float
) -> Document:
    """All points and those on the front (schema ``haplan.front/v1``)."""
    found = points(problem, target=target, time_limit_s=time_limit_s, wishes=wishes)
    return {
        "schema": FRONT_SCHEMA,
        "model": problem.model.name,
        "cluster": problem.cluster.name,
        "target": target,
        "tried": len(found),
        "front": [asdict(point) for point in front(found)],
        "points": [asdict(point) for point in found],
    }
