"""``plan``: from a model, a cluster and a job to a placed, bounded and compared layout."""

from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

from costmodel.assumptions import assumptions_of
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.rules import warnings as layout_warnings
from costmodel.model.graph import ModelGraph
from costmodel.problem import Problem
from costmodel.step import EVALUATOR_VERSION, evaluate
from planner.baselines import baselines
from planner.bound import EXACT
from planner.instance import Instance, layout_of
from planner.kernels import make_ready
from planner.placement import place
from planner.pricing import priced
from planner.process_groups import process_groups
from planner.ramp import bound_for
from planner.search import Found, Scored, search
from planner.shortfall import shortfall_of
from planner.space import Space, declare, unusable_pools
from planner.targets.registry import LAUNCHABLE, check_target
from planner.values import Alternative, Effort, Plan
from planner.watch import Progress, Watch


def plan(
    model: ModelGraph,
    cluster: Cluster,
    job: Job,
    *,
    target: str = "runner",
    time_limit_s: float = 10.0,
    progress: Progress | None = None,
) -> Plan:
    """The fastest layout of the declared space that the search finds, as a plan.

    time_limit_s ends the search (compiling its loops on their first use does not count); a plan
    cut off by it says ``reproducible: false``, and has neither layout nor shortfall when no layout
    was known by then. A model that fits nowhere gives a plan with status ``infeasible`` and its
    shortfall. progress: called with the seconds spent and the step time at every improvement.
    Raises InputError for what cannot be priced (an unknown number of a chip, an unknown target).
    """
    make_ready()
    watch = Watch(limit_s=time_limit_s, progress=progress)
    cluster.check_computes_in(job.precision)
    problem = Problem(model=model, cluster=cluster, job=job)
    check_target(target)
    executor = "runner" if target == LAUNCHABLE else target
    space = declare(model, cluster, job, target=executor, evaluator=EVALUATOR_VERSION)
    instance = priced(problem, space)
    found = search(instance, watch)
    best = _first_placed(cluster, instance, found)
    if best is None:
        return _infeasible(problem, instance, found, watch)
    return _explained(problem, instance, found, best, watch)


def _first_placed(cluster: Cluster, instance: Instance, found: Found) -> Scored | None:
    """The fastest layout whose groups pack into the nodes."""
    for scored in found.ranked:
        if scored.score.step_time_s == float("inf"):
            return None
        if place(cluster, layout_of(instance, scored.draft)) is not None:
            return scored
    return None


def _explained(
    problem: Problem, instance: Instance, found: Found, best: Scored, watch: Watch
) -> Plan:
    layout = layout_of(instance, best.draft)
    evaluation = evaluate(problem, layout)
    step_s = evaluation.step_time_s
    optimal = found.optimal and best is found.best
    bound = bound_for(instance, step_s, optimal=optimal)
    nodes = place(problem.cluster, layout)
    return Plan(
        problem=problem,
        target=instance.space.target,
        status="optimal" if bound.gap <= EXACT else "feasible",
        reproducible=not found.cut_off,
        space=_space_document(instance.space),
        versions=versions(),
        layout=layout,
        evaluation=evaluation,
        nodes=nodes or (),
        groups=process_groups(problem.cluster, layout),
        bound=bound,
        baselines=baselines(instance, (*found.ranked, *found.outside), step_s),
        alternatives=(Alternative(target="any", step_time_s=step_s, relative=0.0),),
        effort=_effort(instance.space, found, watch),
        warnings=(*_warnings(problem, found), *layout_warnings(problem, layout)),
        assumptions=assumptions_of(problem, layout),
    )


def _infeasible(problem: Problem, instance: Instance, found: Found, watch: Watch) -> Plan:
    return Plan(
        problem=problem,
        target=instance.space.target,
        status="infeasible",
        reproducible=not found.cut_off,
        space=_space_document(instance.space),
        versions=versions(),
        layout=None,
        evaluation=None,
        nodes=(),
        groups=(),
        bound=None,
        baselines=(),
        alternatives=(),
        effort=_effort(instance.space, found, watch),
        shortfall=None if found.cut_off else shortfall_of(problem, instance.space),
        warnings=_warnings(problem, found),
        assumptions=assumptions_of(problem, None),
    )


def _warnings(problem: Problem, found: Found) -> tuple[str, ...]:
    cluster, precision = problem.cluster, problem.job.precision
    stopped = "the time limit ended the search; a longer one may find a faster plan"
    left_out = tuple(
        f"pool {name} is left out: {cluster.pool(name).chip.title} does not compute in {precision}"
        for name in unusable_pools(cluster, problem.job)
    )
    return (stopped, *left_out) if found.cut_off else left_out


def _space_document(space: Space) -> MappingProxyType[str, object]:
    return MappingProxyType({"version": space.version, "document": space.document()})


def _effort(space: Space, found: Found, watch: Watch) -> Effort:
    return Effort(
        elapsed_s=watch.elapsed_s,
        first_within_1pct_s=watch.first_within(0.01),
        evaluated=found.evaluated,
        pruned=space.pruned,
    )


def versions() -> MappingProxyType[str, str]:
    """Versions that decide what a plan says."""
    return MappingProxyType(
        {
            "haplan": _version("haplan"),
            "evaluator": EVALUATOR_VERSION,
            "profiles": _version("haplan"),
            "ortools": _version("ortools"),
        }
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
