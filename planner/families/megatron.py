"""The space of equal degrees (Megatron-Core) and its search with a proven bound.

One value of tp, cp, ep, etp, replicas, micro-batch size, recompute mode and ZeRO stage for the
whole job; D copies of one pipeline; its stages hold consecutive layers, cut anywhere; every stage
lies in one pool, the pools come from one vendor and each is one run of neighbouring stages.
"""

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from costmodel.layout.values import StageOption
from costmodel.problem import Problem
from planner.families.branch import FamilyResult, branch_and_bound
from planner.families.cells import cells
from planner.families.links import links_of
from planner.instance import Instance
from planner.watch import Watch

SPACE = "megatron/1"
GOAL = 1e-3
"""Gap at which the search ends."""


def search_equal_degree(
    problem: Problem, instance: Instance, watch: Watch, *, goal: float = GOAL
) -> FamilyResult:
    """The fastest layout with one set of degrees that the search finds, and a bound on all of them.

    instance: the priced space, clipped by a target if there is one; its ``evaluate`` judges what is
    legal. ``watch`` ends the search and hears of every improvement; the bound is valid whenever it
    ends. goal: gap at which the search ends by itself.
    """

    def together(option: StageOption) -> Hashable:
        vendor = problem.cluster.pool(option.pool).chip.vendor
        return vendor, replace(option, pool="", zero=0)

    links = links_of(problem, instance.space.pools)
    none = np.full(len(instance.chips), -1, np.int64)
    return branch_and_bound(instance, links, cells(instance, together), none, watch, goal)
