"""The certificate: a lower bound on the step time by pricing every pipeline template.

Proofs: ``docs/theory/certificate.md``.
"""

from costmodel.problem import Problem
from planner.bound import EXACT
from planner.instance import Instance
from planner.values import Bound
from planner.watch import Watch

METHOD = "certificate"


def certified(problem: Problem, instance: Instance, bound: Bound, seconds: float) -> Bound:
    """The bound after so many seconds of proving; the one given where that proves no more.

    instance: of the space that the bound is for. bound: of a plan whose step time it implies.
    """
    step_s = bound.step_time_s * (1.0 + bound.gap)
    if seconds <= 0 or bound.gap <= EXACT:
        return bound
    from planner.certificate.proof import prove
    from planner.certificate.ready import make_ready

    make_ready()
    clock = Watch(limit_s=seconds)
    proved = prove(problem, instance, step_s, bound.step_time_s, clock.expired)
    if proved <= bound.step_time_s:
        return bound
    return Bound(step_time_s=proved, gap=step_s / proved - 1.0, method=METHOD)
