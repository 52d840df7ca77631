"""Why nothing fits, by how much, and the smallest changes that would help.

The nearest miss comes from the leanest options (highest ZeRO stage, most recomputation, smallest
micro-batch) on chains of pools, with the memory of every chip grown until the model fits.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from costmodel.hardware.values import Pool
from costmodel.job import RECOMPUTE_MODES, Job
from costmodel.layout.values import StageOption
from costmodel.problem import Problem
from planner.chains import Outline, chain_candidate, outlines, pool_orders
from planner.instance import Draft, Instance, layout_of
from planner.pricing import priced
from planner.space import Space, declare, restrict
from planner.targets.registry import ANY
from planner.values import Shortfall

SKETCHES = 400
GROWTHS = 12
"""Halvings of the memory that is added; the last step is 1/4096 of the first."""

MOST_NODES = 64
"""A pool is grown at most so many times its size."""


def shortfall_of(problem: Problem, space: Space, target: str) -> Shortfall:
    """The nearest miss and the changes under which something fits.

    target: what was asked to execute it; where its rules alone stand in the way, that is said.
    """
    if not space.options:
        broken = ", ".join(space.pruned)
        return Shortfall(constraint=f"rules: {broken}", missing_bytes=0.0, pool="", changes=())
    space = declare(
        problem.model, problem.cluster, problem.job, target=ANY, evaluator=space.evaluator
    )
    instance = lean_instance(problem, space)
    if fitting_draft(instance, _sketches(instance)) is not None:
        rules, other = f"rules of the target {target}", (f"the target {ANY}",)
        return Shortfall(constraint=rules, missing_bytes=0.0, pool="", changes=other)
    miss = nearest_miss(instance)
    changes = tuple(_changes(problem, space))
    if miss is None:
        return Shortfall(constraint="memory", missing_bytes=0.0, pool="", changes=changes)
    missing_bytes, draft = miss
    pool = layout_of(instance, draft).pipelines[0].stages[0].option.pool
    return Shortfall(constraint="memory", missing_bytes=missing_bytes, pool=pool, changes=changes)


def lean_instance(problem: Problem, space: Space) -> Instance:
    """The problem with the options that need least memory only."""
    lean = _lean_options(space.options)
    return replace(priced(problem, restrict(space, lean)), largest_zero=3)


def _lean_options(options: tuple[StageOption, ...]) -> tuple[StageOption, ...]:
    zero = max(o.zero for o in options)
    size = min(o.micro_batch_size for o in options)
    mode = max(RECOMPUTE_MODES.index(o.recompute) for o in options)
    return tuple(
        o
        for o in options
        if o.zero == zero
        and o.micro_batch_size == size
        and RECOMPUTE_MODES.index(o.recompute) == mode
    )


def _sketches(instance: Instance) -> list[Outline]:
    """Chains by falling chips of one copy: the most memory for one set of weights comes first."""
    orders = tuple(pool_orders(instance, min(2, len(instance.chips))))
    found = outlines(instance, orders, width=8)

    def lean(sketch: Outline) -> tuple[int, int, float]:
        chips = sum(d.num_chips * stages for d, stages in sketch.parts)
        return -chips * sketch.count, sketch.count, sketch.ideal_s

    return sorted(found, key=lean)[:SKETCHES]


def fitting_draft(instance: Instance, sketches: list[Outline]) -> Draft | None:
    """The first chain that fits by the exact evaluator."""
    found = (chain_candidate(instance, sketch.parts, sketch.count) for sketch in sketches)
    drafts = (candidate.draft for candidate in found if candidate is not None)
    for draft in islice(drafts, 4):
        if instance.evaluate(layout_of(instance, draft)).step_time_s < float("inf"):
            return draft
    return None


def nearest_miss(instance: Instance) -> tuple[float, Draft] | None:
    """Bytes missing on one chip and the layout that misses them; None when no chain exists."""
    sketches = _sketches(instance)
    low, high = 0.0, float(instance.table.capacity_bytes.max()) * 16.0
    best: Draft | None = None
    for _ in range(GROWTHS):
        added = 0.5 * (low + high)
        found = _draft_with(instance, sketches, added)
        if found is None:
            low = added
        else:
            high, best = added, found
    if best is None:
        return None
    return instance.evaluate(layout_of(instance, best)).missing_bytes, best


def _draft_with(instance: Instance, sketches: list[Outline], added_bytes: float) -> Draft | None:
    """A chain that fits when every chip has so much more memory."""
    table = replace(instance.table, capacity_bytes=instance.table.capacity_bytes + added_bytes)
    roomier = replace(instance, table=table)
    found = (chain_candidate(roomier, sketch.parts, sketch.count) for sketch in sketches)
    return next((candidate.draft for candidate in found if candidate is not None), None)


def _changes(problem: Problem, space: Space) -> Iterator[str]:
    for what, job in _smaller_jobs(problem.job):
        if _fits(replace(problem, job=job), space):
            yield what
            break
    for pool in problem.cluster.pools:
        nodes = _enough_nodes(problem, space, pool)
        if nodes is not None:
            chips = (nodes - pool.nodes) * pool.chips_per_node
            more = nodes - pool.nodes
            word = "node" if more == 1 else "nodes"
            yield f"{chips} more chips ({more} {word}) of pool {pool.name}"


def _smaller_jobs(job: Job) -> Iterator[tuple[str, Job]]:
    if job.recompute not in (None, "full"):
        yield "recompute full", replace(job, recompute="full")
    if job.micro_batch_size is not None and job.micro_batch_size > 1:
        yield "micro-batch size 1", replace(job, micro_batch_size=1)
    length = job.sequence_length // 2
    while length >= 512:
        yield f"sequences of {length} tokens", replace(job, sequence_length=length)
        length //= 2


def _enough_nodes(problem: Problem, space: Space, pool: Pool) -> int | None:
    """Fewest nodes of one pool with which a chain fits; None when even many do not help."""

    def enough(nodes: int) -> bool:
        pools = tuple(replace(p, nodes=nodes) if p is pool else p for p in problem.cluster.pools)
        cluster = replace(problem.cluster, pools=pools)
        return _fits(replace(problem, cluster=cluster), space)

    low, high = pool.nodes, pool.nodes * 2
    while not enough(high):
        low, high = high, high * 2
        if high > pool.nodes * MOST_NODES:
            return None
    while high - low > max(1, pool.nodes // 8):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _fits(problem: Problem, space: Space) -> bool:
    """Whether a chain of the leanest options fits."""
    declared = declare(
        problem.model, problem.cluster, problem.job, target=space.target, evaluator=space.evaluator
    )
    if not declared.options:
        return False
    instance = lean_instance(problem, declared)
    return fitting_draft(instance, _sketches(instance)) is not None
