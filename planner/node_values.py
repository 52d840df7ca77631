"""What one more node of each pool would be worth: the plan searched again on the larger cluster."""

from dataclasses import dataclass, replace
from typing import Any, cast

from costmodel.hardware.read import load_cluster
from costmodel.hardware.values import Cluster, Pool
from costmodel.step import EVALUATOR_VERSION
from planner.pricing import priced
from planner.space import declare
from planner.target_search import chosen, outcomes
from planner.targets.registry import ANY
from planner.values import Plan
from planner.watch import Watch

SEARCH_S = 2.0
"""For each pool."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeValue:
    """Step time with so many more nodes of a pool / now - 1; 0 where they would stay idle."""

    pool: str
    nodes: int
    step_time_s: float
    relative: float


def node_values(plan: Plan, *, search_s: float = SEARCH_S) -> tuple[NodeValue, ...]:
    """The value of a node of each pool, best first; nothing for a plan without a layout."""
    if plan.layout is None:
        return ()
    found = [_value(plan, pool, search_s) for pool in plan.problem.cluster.pools]
    return tuple(sorted(found, key=lambda v: (v.relative, v.pool)))


def _value(plan: Plan, pool: Pool, search_s: float) -> NodeValue:
    """A node more, or as many as a scale-up domain has; what is there can do what it does now."""
    nodes = max(1, pool.scale_up_domain // pool.chips_per_node)
    problem = replace(plan.problem, cluster=with_more(plan.problem.cluster, pool, nodes))
    space = declare(
        problem.model, problem.cluster, problem.job, target=ANY, evaluator=EVALUATOR_VERSION
    )
    tried = outcomes(problem, priced(problem, space), plan.target, Watch(limit_s=search_s))
    step_s = min(plan.step_time_s, chosen(tried).step_time_s)
    return NodeValue(
        pool=pool.name, nodes=nodes, step_time_s=step_s, relative=step_s / plan.step_time_s - 1.0
    )


def with_more(cluster: Cluster, pool: Pool, nodes: int) -> Cluster:
    """The cluster with so many more nodes of a pool; they have no names yet."""
    document = cast("Document", dict(cluster.document))
    entries = cast("list[Document]", document["pools"])
    document["pools"] = [
        _grown(entry, pool.nodes + nodes) if entry["name"] == pool.name else entry
        for entry in entries
    ]
    return load_cluster(document)


def _grown(entry: Document, nodes: int) -> Document:
    rest = {key: value for key, value in entry.items() if key != "node_names"}
    return rest | {"nodes": nodes}
