"""Hosts in rank order: ranks of a host are consecutive, and stages follow each other in rank."""

from collections.abc import Iterator
from math import ceil

from costmodel.errors import Violation
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.targets.target import Rule


def hosts_in_order(problem: Problem, layout: Layout) -> dict[str, int]:
    """Nodes of each pool that are needed when a host holds consecutive ranks only.

    A host is shared by neighbouring stages when both lie in this pool alone; everywhere else the
    stages begin on a host of their own.
    """
    needed = {pool.name: 0 for pool in problem.cluster.pools}
    for run in _runs(layout):
        for name, chips in run.items():
            needed[name] += ceil(chips / problem.cluster.pool(name).chips_per_node)
    return needed


def _runs(layout: Layout) -> Iterator[dict[str, int]]:
    """Chips by pool of each stage, over all pipelines; stages in one and the same pool joined."""
    last: dict[str, int] = {}
    for i in range(max(len(p.stages) for p in layout.pipelines)):
        chips: dict[str, int] = {}
        for pipeline in layout.pipelines:
            if i < len(pipeline.stages):
                option = pipeline.stages[i].option
                chips[option.pool] = chips.get(option.pool, 0) + pipeline.count * option.num_chips
        if len(last) == 1 and last.keys() == chips.keys():
            last = {name: last[name] + n for name, n in chips.items()}
        else:
            yield last
            last = chips
    yield last


def _check(problem: Problem, layout: Layout) -> Iterator[Violation]:
    for name, nodes in hosts_in_order(problem, layout).items():
        if nodes > problem.cluster.pool(name).nodes:
            yield Violation(
                field="/pipelines",
                value=f"{nodes} nodes of pool {name}",
                rule=f"must fit the {problem.cluster.pool(name).nodes} nodes of pool {name} "
                "with the ranks of a host in a row",
                fix="let every stage fill whole nodes, or keep the stages of a pool together",
            )


HOSTS_IN_RANK_ORDER = Rule(
    id="hosts-in-rank-order",
    sentence="Ranks go through the stages in order and a host's ranks are consecutive, so a stage "
    "begins on a host of its own unless its neighbour lies in the same pool.",
    check=_check,
)
