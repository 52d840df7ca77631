"""``plan``: from a model, a cluster and a job to a placed, bounded and compared layout."""

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

from costmodel.assumptions import assumptions_of
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.rules import warnings as layout_warnings
from costmodel.model.graph import ModelGraph
from costmodel.problem import Problem
from costmodel.step import EVALUATOR_VERSION, evaluate
from planner.baselines.baseline import Setting
from planner.baselines.registry import compared
from planner.bound import EXACT
from planner.certificate import certified
from planner.family_search import family_bound
from planner.instance import Instance, layout_of
from planner.interleaved_search import PROOF_SHARE, longer_bound, whole_bound
from planner.kernels import make_ready
from planner.placement import place
from planner.pricing import priced
from planner.process_groups import process_groups
from planner.ramp import bound_for
from planner.shortfall import shortfall_of
from planner.space import Space, declare, unusable_pools
from planner.target_search import Outcome, alternatives, chosen, outcomes, proved, was_cut_off
from planner.targets.registry import ANY, LAUNCHABLE, check_target
from planner.values import Baseline, Effort, Plan
from planner.watch import Progress, Watch
from planner.wishes import NO_WISHES, Wishes

BASELINES_S = 60.0
"""For baselines that search; each has limits of its own too."""

KEPT_S, KEPT_SHARE = 0.5, 0.15
"""Of the time limit, kept for what comes after the search: seconds, and the share at most."""


def plan(  # noqa: PLR0913  the question of a user
    model: ModelGraph,
    cluster: Cluster,
    job: Job,
    *,
    target: str = LAUNCHABLE,
    time_limit_s: float = 10.0,
    progress: Progress | None = None,
    wishes: Wishes = NO_WISHES,
) -> Plan:
    """The fastest layout of the declared space that the search finds, as a plan.

    time_limit_s is for the plan with its bound and the usual baselines, so the search ends a little
    before (compiling its loops on their first use does not count). A plan cut off by it says
    ``reproducible: false``, and has neither layout nor shortfall when no layout was known by then.
    A model that fits nowhere gives a plan with status ``infeasible`` and its shortfall. progress:
    called with the seconds spent and the step time at every improvement.
    wishes: what else is asked. Raises InputError for what cannot be priced (an unknown number of
    a chip, an unknown target).
    """
    make_ready()
    kept_s = min(KEPT_S, KEPT_SHARE * time_limit_s)
    watch = Watch(limit_s=time_limit_s - kept_s, progress=progress)
    check_target(target)
    cluster.check_computes_in(job.precision)
    problem = Problem(model=model, cluster=cluster, job=job)
    space = declare(model, cluster, job, target=ANY, evaluator=EVALUATOR_VERSION)
    everything = priced(problem, space)
    tried = proved(outcomes(problem, everything, target, watch, wishes), watch)
    if chosen(tried).best is None:
        return _infeasible(problem, tried, watch)
    found = _explained(problem, tried, watch, wishes.prove_s)
    baselines = _baselines(problem, everything, found, wishes)
    warnings = (*found.warnings, *beaten(baselines))
    return replace(found, baselines=baselines, warnings=warnings)


def beaten(baselines: tuple[Baseline, ...]) -> tuple[str, ...]:
    """A warning for every baseline that is faster than the plan beside which it stands."""
    return tuple(
        f"the baseline {each.name} is faster: a longer time limit may find a faster plan, "
        "unless the target cannot run what the baseline does"
        for each in baselines
        if each.speedup is not None and each.speedup < 1.0 - EXACT
    )


def _baselines(
    problem: Problem, everything: Instance, found: Plan, wishes: Wishes
) -> tuple[Baseline, ...]:
    """Simpler planners beside the plan; what they find is told to no search."""
    setting = Setting(
        problem=problem,
        instance=everything,
        watch=Watch(limit_s=BASELINES_S),
        given=wishes.given,
    )
    return compared(setting, found.step_time_s, every=wishes.every_baseline)


def _explained(problem: Problem, tried: list[Outcome], watch: Watch, prove_s: float) -> Plan:
    best = chosen(tried)
    assert best.best is not None
    instance, found = best.instance, best.found
    layout = layout_of(instance, best.best.draft)
    evaluation = evaluate(problem, layout)
    step_s = evaluation.step_time_s
    bound = bound_for(instance, step_s, optimal=found.optimal and best.best is found.best)
    bound = family_bound(best.target.name, layout, step_s, bound, best.bound_s)
    effort = _effort(tried, best, watch)
    prove_s = 0.0 if best.bound_s else prove_s
    clock = Watch(limit_s=prove_s)
    longer_s = longer_bound(problem, instance, best.target, step_s, PROOF_SHARE * prove_s)
    bound = certified(problem, instance, bound, prove_s - clock.elapsed_s)
    bound = whole_bound(instance, bound, max(best.interleaved_s, longer_s), step_s)
    return Plan(
        problem=problem,
        target=best.target.label,
        status="optimal" if bound.gap <= EXACT else "feasible",
        reproducible=not was_cut_off(tried),
        space=_space_document(instance.space),
        versions=versions(),
        layout=layout,
        evaluation=evaluation,
        nodes=place(problem.cluster, layout) or (),
        groups=process_groups(problem.cluster, layout),
        bound=bound,
        baselines=(),
        alternatives=alternatives(tried, best),
        effort=effort,
        warnings=(*_warnings(problem, tried), *layout_warnings(problem, layout)),
        assumptions=assumptions_of(problem, layout),
    )


def _infeasible(problem: Problem, tried: list[Outcome], watch: Watch) -> Plan:
    best = chosen(tried)
    known = not was_cut_off(tried)
    target = best.target.label if len(tried) == 1 else LAUNCHABLE
    return Plan(
        problem=problem,
        target=target,
        status="infeasible",
        reproducible=known,
        space=_space_document(best.instance.space),
        versions=versions(),
        layout=None,
        evaluation=None,
        nodes=(),
        groups=(),
        bound=None,
        baselines=(),
        alternatives=(),
        effort=_effort(tried, best, watch),
        shortfall=shortfall_of(problem, best.instance.space, target) if known else None,
        warnings=_warnings(problem, tried),
        assumptions=assumptions_of(problem, None),
    )


def _warnings(problem: Problem, tried: list[Outcome]) -> tuple[str, ...]:
    cluster, precision = problem.cluster, problem.job.precision
    stopped = "the time limit ended the search; a longer one may find a faster plan"
    left_out = tuple(
        f"pool {name} is left out: {cluster.pool(name).chip.title} does not compute in {precision}"
        for name in unusable_pools(cluster, problem.job)
    )
    return (stopped, *left_out) if was_cut_off(tried) else left_out


def _space_document(space: Space) -> MappingProxyType[str, object]:
    return MappingProxyType({"version": space.version, "document": space.document()})


def _effort(tried: list[Outcome], best: Outcome, watch: Watch) -> Effort:
    return Effort(
        elapsed_s=watch.elapsed_s,
        first_within_1pct_s=watch.first_within(0.01),
        evaluated=sum(o.found.evaluated for o in tried),
        pruned=best.instance.space.pruned,
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
