"""The space of chains of meshes (FlagScale) and its search with a proven bound.

D copies of one pipeline, whose stages hold consecutive layers, cut anywhere. Each pool is at most
one mesh: a run of neighbouring stages with tp, cp, ep and replicas of their own and a micro-batch
size such that all meshes pass equally many sequences on. Recompute is selective everywhere, or
full or none by stage; pools of one vendor are neighbours.
"""

from collections.abc import Hashable

import numpy as np

from costmodel.layout.values import StageOption
from costmodel.problem import Problem
from planner.families.branch import FamilyResult, branch_and_bound
from planner.families.cells import cells
from planner.families.links import links_of
from planner.instance import Instance
from planner.watch import Watch

SPACE = "flagscale/1"
GOAL = 1e-3
"""Gap at which the search ends."""


def search_meshes(
    problem: Problem, instance: Instance, watch: Watch, *, goal: float = GOAL
) -> FamilyResult:
    """The fastest chain of meshes that the search finds, and a bound on all of them.

    Arguments as for ``planner.families.megatron.search_equal_degree``.
    """
    links = links_of(problem, instance.space.pools)
    vendors = [problem.cluster.pool(name).chip.vendor for name in instance.space.pools]
    kin = np.array([vendors.index(vendor) for vendor in vendors], np.int64)
    return branch_and_bound(instance, links, cells(instance, _together), kin, watch, goal)


def _together(option: StageOption) -> Hashable:
    return option.recompute == "selective", option.ep > 1
