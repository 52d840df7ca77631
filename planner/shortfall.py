"""Why nothing fits, by how much, and the smallest change that would help."""

from collections.abc import Iterator
from dataclasses import replace

from costmodel.hardware.values import Cluster, Pool
from costmodel.job import Job
from costmodel.problem import Problem
from planner.instance import Instance, layout_of
from planner.pricing import priced
from planner.search import Scored, search
from planner.space import Space, declare
from planner.values import Shortfall
from planner.watch import Watch

LIMIT_S = 5.0
GROWTH = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0)


def shortfall_of(problem: Problem, instance: Instance, tried: tuple[Scored, ...]) -> Shortfall:
    """The nearest miss among the layouts tried, and the changes under which something fits."""
    space = instance.space
    if not space.options:
        rules = ", ".join(space.pruned)
        return Shortfall(constraint=f"rules: {rules}", missing_bytes=0.0, pool="", changes=())
    nearest = min(tried, key=lambda s: s.score.missing_bytes, default=None)
    pool = ""
    if nearest is not None:
        layout = layout_of(instance, nearest.draft)
        pool = layout.pipelines[0].stages[0].option.pool
    return Shortfall(
        constraint="memory",
        missing_bytes=nearest.score.missing_bytes if nearest else 0.0,
        pool=pool,
        changes=tuple(_changes(problem, space)),
    )


def _changes(problem: Problem, space: Space) -> Iterator[str]:
    for name, job in _smaller_jobs(problem.job):
        if _fits(replace(problem, job=job), space):
            yield name
            break
    for pool in problem.cluster.pools:
        grown = _enough_nodes(problem, space, pool)
        if grown is not None:
            extra = (grown - pool.nodes) * pool.chips_per_node
            yield f"{extra} more chips ({grown - pool.nodes} nodes) of pool {pool.name}"


def _smaller_jobs(job: Job) -> Iterator[tuple[str, Job]]:
    if job.recompute not in (None, "full"):
        yield "recompute full instead of " + job.recompute, replace(job, recompute="full")
    if job.micro_batch_size is not None and job.micro_batch_size > 1:
        yield "micro-batch size 1", replace(job, micro_batch_size=1)
    length = job.sequence_length // 2
    while length >= 512:
        yield f"sequence length {length}", replace(job, sequence_length=length)
        length //= 2


def _enough_nodes(problem: Problem, space: Space, pool: Pool) -> int | None:
    """Nodes of one pool, on a ladder, with which the model fits."""
    for factor in GROWTH:
        nodes = max(pool.nodes + 1, round(pool.nodes * factor))
        pools = tuple(replace(p, nodes=nodes) if p is pool else p for p in problem.cluster.pools)
        cluster: Cluster = replace(problem.cluster, pools=pools)
        if _fits(replace(problem, cluster=cluster), space):
            return nodes
    return None


def _fits(problem: Problem, space: Space) -> bool:
    """Whether the search finds any layout that fits; looks where memory is easiest first."""
    again = declare(
        problem.model, problem.cluster, problem.job, target=space.target, evaluator=space.evaluator
    )
    return search(priced(problem, again), Watch(limit_s=LIMIT_S)).best is not None
