"""The search of ``planner.interleaving`` behind a target: better layouts, and a bound on its part.

The interleaved layouts of every space are chains of one set of degrees in equal copies, whatever
else the space holds with one run of layers on a stage.
"""

from costmodel.problem import Problem
from planner.bound import EXACT, work_bound
from planner.instance import Instance
from planner.interleaving.search import SPACE, Wanted, search_interleaved
from planner.search import Found, Scored
from planner.space import INTERLEAVED
from planner.targets.target import Target
from planner.values import Bound
from planner.watch import Watch

NOTHING = Found(ranked=(), evaluated=0, optimal=False, cut_off=False)


def interleaves(instance: Instance) -> bool:
    """Whether the space has interleaved layouts."""
    return INTERLEAVED in instance.space.schedules and bool(instance.space.options)


def only_interleaves(instance: Instance) -> bool:
    """Whether it has no others."""
    return instance.space.schedules[:1] == (INTERLEAVED,)


def interleaved_found(
    problem: Problem, instance: Instance, target: Target, watch: Watch, best_s: float
) -> tuple[Found, float]:
    """What is found below ``best_s``, and a bound on all interleaved layouts; infinite for none.

    Of models of which only a part is trained none is looked at.
    """
    if not interleaves(instance):
        return NOTHING, float("inf")
    floor_s = work_bound(instance) + instance.floor
    if instance.trained_share < 1.0:
        return NOTHING, floor_s
    shape = target.shape
    wanted = Wanted(chunks=shape.chunks, depths=shape.depths, one_vendor=shape.one_vendor)
    result = search_interleaved(problem, instance, watch, best_s=best_s, wanted=wanted)
    ranked: tuple[Scored, ...] = ()
    if result.draft is not None and result.score is not None:
        ranked = (Scored(draft=result.draft, score=result.score, family=INTERLEAVED),)
    found = Found(
        ranked=ranked, evaluated=result.evaluations, optimal=False, cut_off=watch.expired()
    )
    return found, max(floor_s, result.bound_s)


PROOF_SHARE = 0.25
"""Of the seconds of a proof, for the bound on interleaved layouts."""


def longer_bound(
    problem: Problem, instance: Instance, target: Target, step_s: float, seconds: float
) -> float:
    """The bound on all interleaved layouts after so many seconds; 0 without any."""
    if seconds <= 0:
        return 0.0
    return interleaved_found(problem, instance, target, Watch(limit_s=seconds), step_s)[1]


def whole_bound(instance: Instance, bound: Bound, interleaved_s: float, step_s: float) -> Bound:
    """The lesser of a bound on everything else and of the one on interleaved layouts.

    Of a space that has no others it is the latter, which is at least the work bound.
    """
    if not only_interleaves(instance) and interleaved_s >= min(
        bound.step_time_s, step_s / (1 + EXACT)
    ):
        return bound
    return Bound(
        step_time_s=interleaved_s,
        gap=step_s / interleaved_s - 1.0,
        method=f"best first over {SPACE}",
    )
