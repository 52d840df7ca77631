"""One search problem: the space, its priced options and the two questions put to the cost model."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from costmodel.schedules.registry import schedule
from costmodel.stage.table import StageTable
from planner.arrays import (
    Arrays,
    FloatArray,
    Grid,
    IntArray,
    grid_of,
    parameter_bytes,
    search_arrays,
    stage_bytes,
    template_seconds,
)
from planner.space import INTERLEAVED, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A pipeline without its micro-batches: option row of each stage and the cuts between layers.

    Stage i of p runs option ``rows[i]`` on layers [cuts[c], cuts[c + 1]) for c = i, i + p, ... of
    the ``chunks x p`` chunks; all but interleaved pipelines have one chunk a stage.
    """

    rows: tuple[int, ...]
    cuts: tuple[int, ...]

    @property
    def chunks(self) -> int:
        """Runs of layers on each stage."""
        return (len(self.cuts) - 1) // len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """``count`` copies of a template with ``microbatches`` each."""

    template: Template
    count: int
    microbatches: int


Draft = tuple[Entry, ...]
"""A layout as the search handles it, before it becomes a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What the evaluator says of a layout: the step time, infinite when it does not fit."""

    step_time_s: float
    pipeline_s: float
    missing_bytes: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Instance:
    """Everything that the search reads.

    chips, islands: per pool of ``space.pools``: usable chips and index of the island.
    transfer: seconds of one hand-over (activation forward, gradient back) between two options.
    evaluate: exact score of a layout, the same that the plan reports.
    floor: seconds that the evaluator adds to every layout at least (fixed overhead).
    largest_zero: ZeRO stage up to which the heuristics look (2 and 3 cost traffic every
        micro-batch, so they are tried when nothing else fits); the enumeration and the bound
        ignore it.
    allows: whether the target executes a layout; one that it does not has an infinite score.
    trained_share: share of the parameters that is trained; below 1 chips hold less than
        ``planner.arrays`` says.
    """

    space: Space
    job: Job
    table: StageTable
    chips: tuple[int, ...]
    islands: tuple[int, ...]
    transfer: Callable[[StageOption, StageOption], tuple[float, float]]
    evaluate: Callable[[Layout], Score]
    mtp: int = 0
    floor: float = 0.0
    trained_share: float = 1.0
    largest_zero: int = 1
    allows: Callable[[Layout], bool] = lambda _: True

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return self.table.num_layers

    @property
    def batch(self) -> int:
        """Sequences per step."""
        return self.job.global_batch_size


@lru_cache(maxsize=4096)
def arrays(instance: Instance, pipelines: int) -> Arrays:
    """Search arrays when so many pipelines hold each layer."""
    dense, expert = parameter_bytes(_grid(instance), instance.job, pipelines)
    return _base(instance)._replace(dense_bytes=dense, expert_bytes=expert)


@lru_cache(maxsize=8)
def _grid(instance: Instance) -> Grid:
    return grid_of(instance.table)


@lru_cache(maxsize=8)
def _base(instance: Instance) -> Arrays:
    none = np.zeros(len(instance.table.options))
    return search_arrays(instance.table, none, none)


def template_chips(instance: Instance, template: Template) -> IntArray:
    """Chips of one copy by pool."""
    used = np.zeros(len(instance.chips), np.int64)
    for row in template.rows:
        used[instance.table.pool_index[row]] += instance.table.num_chips[row]
    return used


def template_samples(instance: Instance, template: Template) -> int:
    """Sequences per micro-batch of one copy."""
    return int(instance.table.samples[template.rows[0]])


@lru_cache(maxsize=200_000)
def transfers(instance: Instance, rows: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Hand-over seconds between neighbouring stages, forward and backward, shape (p - 1,)."""
    options = instance.table.options
    pairs = [_transfer(instance, options[a], options[b]) for a, b in pairwise(rows)]
    both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


@lru_cache(maxsize=200_000)
def _transfer(instance: Instance, a: StageOption, b: StageOption) -> tuple[float, float]:
    return instance.transfer(a, b)


def times(
    instance: Instance, template: Template
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Forward, backward and hand-over seconds of a template, as the schedules take them."""
    rows = np.array(template.rows, np.int64)
    cuts = np.array(template.cuts, np.int64)
    forward, backward = template_seconds(arrays(instance, 1), rows, cuts, instance.num_layers)
    return (forward, backward, *transfers(instance, template.rows))


def makespan(instance: Instance, template: Template, microbatches: int) -> float:
    """Simulated seconds of a pipeline without gradient synchronisation."""
    kind = schedule(instance.space.schedules[0])
    return kind.simulate(*times(instance, template), microbatches)[0]


def in_flight(instance: Instance, num_stages: int, microbatches: int) -> IntArray:
    """Micro-batches whose activations each stage keeps at its peak, shape (p,)."""
    kind = schedule(instance.space.schedules[0])
    kept = [kind.in_flight(num_stages, i, microbatches) for i in range(num_stages)]
    return np.array(kept, np.int64)


def pipeline_of(instance: Instance, entry: Entry) -> Pipeline:
    """The entry as a pipeline of the layout language."""
    rows, runs = entry.template.rows, tuple(pairwise(entry.template.cuts))
    last = len(rows) - 1
    stages = tuple(
        Stage(
            option=instance.table.options[row],
            chunks=runs[i :: len(rows)],
            embedding=i == 0,
            head=i == last,
            mtp=instance.mtp if i == last else 0,
        )
        for i, row in enumerate(rows)
    )
    return Pipeline(stages=stages, microbatches=entry.microbatches, count=entry.count)


def layout_of(instance: Instance, draft: Draft) -> Layout:
    """The layout that the entries describe, in a canonical order; all have equally many chunks."""
    ordered = sorted(
        draft, key=lambda e: (-e.microbatches, e.template.rows, e.template.cuts, e.count)
    )
    return Layout(
        pipelines=tuple(pipeline_of(instance, entry) for entry in ordered),
        schedule=_schedule(instance, draft),
    )


def _schedule(instance: Instance, draft: Draft) -> Schedule:
    chunks = draft[0].template.chunks if draft else 1
    if chunks > 1:
        return Schedule(kind=INTERLEAVED, virtual_stages=chunks)
    return Schedule(kind=instance.space.schedules[0])


def draft_samples(instance: Instance, draft: Draft) -> int:
    """Sequences per step of the draft."""
    return sum(e.count * e.microbatches * template_samples(instance, e.template) for e in draft)


def draft_chips(instance: Instance, draft: Draft) -> IntArray:
    """Chips in use by pool."""
    used = np.zeros(len(instance.chips), np.int64)
    for e in draft:
        used += e.count * template_chips(instance, e.template)
    return used


def fits_roughly(instance: Instance, draft: Draft) -> bool:
    """Whether all stages fit when every pipeline of the draft shares all layers.

    Exact for drafts whose pipelines cut the layers alike; a quick filter otherwise.
    """
    x = arrays(instance, pipelines_of(draft))
    layers = instance.num_layers
    for e in draft:
        rows, cuts = e.template.rows, e.template.cuts
        kept = in_flight(instance, len(rows), e.microbatches)
        for i, row in enumerate(rows):
            used = stage_bytes(x, row, cuts[i], cuts[i + 1], layers, int(kept[i]))
            if used > x.budget[row]:
                return False
    return True


def shapes_of(draft: Draft) -> int:
    """Number of different pipelines, whatever their micro-batches."""
    return len({e.template for e in draft})


def pools_of(instance: Instance, draft: Draft) -> frozenset[int]:
    """Pools whose chips the draft uses."""
    return frozenset(int(instance.table.pool_index[row]) for e in draft for row in e.template.rows)


def pipelines_of(draft: Draft) -> int:
    """Number of pipelines that run side by side."""
    return sum(e.count for e in draft)


def largest_microbatches(
    instance: Instance, template: Template, budget_s: float, limit: int
) -> int:
    """Most micro-batches m <= limit whose simulated makespan is within the budget; 0 if none."""
    kind = schedule(instance.space.schedules[0])
    forward, backward, up, down = times(instance, template)
    if budget_s == float("inf"):
        return limit
    work = float((forward + backward).max())
    low, high = 0, min(limit, int(budget_s / work * (1 + 1e-12)))
    while low < high:
        m = (low + high + 1) // 2
        if kind.simulate(forward, backward, up, down, m)[0] <= budget_s:
            low = m
        else:
            high = m - 1
    return low
