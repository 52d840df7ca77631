"""The best that one pool can do alone."""

from costmodel.layout.values import Layout
from planner.baselines.baseline import BaselineRule, Setting, several_pools
from planner.bound import work_bound
from planner.instance import layout_of
from planner.mesh_search import Effort, Result, search_meshes

EFFORT = Effort(scored=40, improved=1)


def propose(setting: Setting) -> Layout | None:
    """One set of degrees on the chips of one pool, layers cut anywhere; the best over pools.

    Pools whose work bound is above the best so far are passed over.
    """
    instance, best = setting.instance, list[Result]()
    bounds = {k: work_bound(instance, (k,)) for k in range(len(instance.chips))}
    for k in sorted(bounds, key=bounds.__getitem__):
        if best and bounds[k] >= best[0][1].step_time_s:
            break
        found = search_meshes(instance, [(k,)], setting.watch, even=False, effort=EFFORT)
        fitting = [result for result in found[:1] if result[1].step_time_s < float("inf")]
        best = sorted([*best, *fitting], key=lambda result: result[1].step_time_s)
    return layout_of(instance, best[0][0]) if best else None


BASELINE = BaselineRule(
    name="single pool",
    sentence="The best pool alone: one set of degrees, layers cut anywhere.",
    source="what is done with a mixed cluster that nothing can use as a whole",
    order=1,
    propose=propose,
    applies=several_pools,
    always=True,
)
