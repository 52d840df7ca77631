"""The searches of ``planner.families`` behind a target: better layouts, and a bound."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.families.branch import FamilyResult
from planner.families.flagscale import SPACE as FLAGSCALE
from planner.families.flagscale import search_meshes
from planner.families.megatron import SPACE as MEGATRON
from planner.families.megatron import search_equal_degree
from planner.instance import Instance
from planner.search import Found, Scored
from planner.values import Bound
from planner.watch import Watch

Search = Callable[[Problem, Instance, Watch], FamilyResult]

FAMILIES: Mapping[str, tuple[str, Search]] = MappingProxyType(
    {"megatron": (MEGATRON, search_equal_degree), "flagscale": (FLAGSCALE, search_meshes)}
)
"""By name of the target: the family's space and its search."""


def family_found(
    problem: Problem, name: str, instance: Instance, watch: Watch
) -> tuple[Found, float]:
    """What the family's search finds, and its bound; 0 if it proves nothing."""
    result = FAMILIES[name][1](problem, instance, watch)
    bound_s = result.bound_s if result.bound_s < float("inf") else 0.0
    added: tuple[Scored, ...] = ()
    if result.draft is not None and result.score is not None:
        added = (Scored(draft=result.draft, score=result.score, family=name),)
    found = Found(
        ranked=added, evaluated=result.evaluations, optimal=False, cut_off=watch.expired()
    )
    return found, bound_s


def family_bound(
    name: str, layout: Layout, step_time_s: float, bound: Bound, proved_s: float
) -> Bound:
    """The better of two bounds, where the layout belongs to the family: one shape of pipeline.

    Families hold layouts whose copies are alike; others are only bounded by ``bound``.
    """
    alike = len({pipeline.stages for pipeline in layout.pipelines}) == 1
    proved_s = min(proved_s, step_time_s)
    if name not in FAMILIES or not alike or not bound.step_time_s < proved_s:
        return bound
    space, _ = FAMILIES[name]
    return Bound(
        step_time_s=proved_s,
        gap=step_time_s / proved_s - 1.0,
        method=f"branch and bound over {space}",
    )
