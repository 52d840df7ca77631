"""The searches of ``planner.families`` behind a target: better layouts, and a bound."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.families.branch import FamilyResult
from planner.families.flagscale import SPACE as FLAGSCALE
from planner.families.flagscale import search_meshes
from planner.families.megatron import SPACE as MEGATRON
from planner.families.megatron import search_equal_degree
from planner.instance import Instance
from planner.pricing import with_options
from planner.search import Found, Scored
from planner.values import Bound
from planner.watch import Watch

Search = Callable[[Problem, Instance, Watch], FamilyResult]

FAMILIES: Mapping[str, tuple[str, Search]] = MappingProxyType(
    {"megatron": (MEGATRON, search_equal_degree), "flagscale": (FLAGSCALE, search_meshes)}
)
"""By name of the target: the family's space and its search."""


def deepened(
    problem: Problem, name: str, instance: Instance, found: Found, watch: Watch
) -> tuple[Found, float]:
    """What was found with what the family's search adds, and its bound; 0 if it proves nothing."""
    left = max(0.0, watch.limit_s - watch.elapsed_s)
    _make_ready(problem, name, instance)
    own = Watch(limit_s=left, progress=lambda _, step_s: watch.saw(step_s))
    result = FAMILIES[name][1](problem, instance, own)
    bound_s = result.bound_s if result.bound_s < float("inf") else 0.0
    evaluated = found.evaluated + result.evaluations
    if result.draft is None or result.score is None:
        return replace(found, evaluated=evaluated, cut_off=own.expired()), bound_s
    added = Scored(draft=result.draft, score=result.score, family=name)
    ranked = tuple(sorted((*found.ranked, added), key=lambda s: s.rank))
    return replace(found, ranked=ranked, evaluated=evaluated, cut_off=own.expired()), bound_s


MOMENT_S = 0.05


def _make_ready(problem: Problem, name: str, instance: Instance) -> None:
    """Compiles the family's loops, where that was not done before, on the few widest options."""
    widest = max(o.tp for o in instance.space.options)
    least = min(o.micro_batch_size for o in instance.space.options)
    few = [o for o in instance.space.options if (o.tp, o.micro_batch_size) == (widest, least)]
    if few:
        FAMILIES[name][1](problem, with_options(instance, few), Watch(limit_s=MOMENT_S))


def family_bound(
    name: str, layout: Layout, step_time_s: float, bound: Bound, proved_s: float
) -> Bound:
    """The better of two bounds, where the layout belongs to the family: one shape of pipeline.

    Families hold layouts whose copies are alike; others are only bounded by ``bound``.
    """
    alike = len({pipeline.stages for pipeline in layout.pipelines}) == 1
    if name not in FAMILIES or not alike or not bound.step_time_s < proved_s <= step_time_s:
        return bound
    space, _ = FAMILIES[name]
    return Bound(
        step_time_s=proved_s,
        gap=step_time_s / proved_s - 1.0,
        method=f"branch and bound over {space}",
    )
