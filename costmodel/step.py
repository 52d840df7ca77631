"""The evaluator: time and memory of one layout. Nothing else computes a step time.

Per pipeline the schedule is simulated event by event with each stage's forward and backward times
and the hand-overs between stages. A stage's gradients are summed once all stages that share a
layer with it have finished their last backward; then it updates its parameters. The step ends
when the last stage is done.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from costmodel.after_backward import (
    Sync,
    exposed_sync_s,
    host_optimizer_s,
    optimizer_s,
    pieces_s,
    reached_sync,
)
from costmodel.evaluation import Evaluation, StageEvaluation, StageMemory, StageTime
from costmodel.frame import Frame, Index, frame, shard_counts
from costmodel.hardware.values import Pool
from costmodel.layout.values import Layout, StageOption
from costmodel.memory import Shards, static_bytes
from costmodel.model.flops import flops_per_token
from costmodel.network.sharding import sharding_seconds
from costmodel.network.synchronisation import stage_sync
from costmodel.pipeline_run import PipelineRun, pipeline_run
from costmodel.pipeline_seconds import Extra, visits_of
from costmodel.pipeline_time import StageEnd, stage_ends
from costmodel.problem import Problem
from costmodel.same import SameProblem
from costmodel.schedules.registry import schedule as schedule_kind
from costmodel.stage.chunks import Kept, kept_apart, kept_interleaved
from costmodel.stage.costs import stage_table
from costmodel.stage.in_flight import most_counts
from costmodel.stage.table import FloatArray, StageTable

EVALUATOR_VERSION = "10"
"""Changes whenever the same layout would get another step time."""

__all__ = ["EVALUATOR_VERSION", "Evaluator", "Problem", "evaluate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """Evaluates layouts of one problem whose stage options are rows of one table.

    model_flop: arithmetic of one step, without recomputation.
    """

    problem: Problem
    table: StageTable
    rows: Mapping[StageOption, int] = field(repr=False)
    model_flop: float

    @classmethod
    def of(cls, problem: Problem, options: Iterable[StageOption]) -> "Evaluator":
        """Builds the table of these options (each once)."""
        distinct = tuple(dict.fromkeys(options))
        model, job = problem.model, problem.job
        table = stage_table(model, problem.cluster, job, distinct, problem.efficiency)
        tokens = job.global_batch_size * job.sequence_length
        return cls(
            problem=problem,
            table=table,
            rows={option: row for row, option in enumerate(distinct)},
            model_flop=tokens * flops_per_token(model, job.sequence_length),
        )

    def evaluate(self, layout: Layout) -> Evaluation:
        """Time and memory of a layout that obeys the rules of ``costmodel.layout.rules``."""
        problem, view = self.problem, frame(self.table, self.rows, layout)
        shards = shard_counts(view)
        times, ends = self._times(view, shards)
        last = max(times, key=lambda index: (times[index].finish_s, index))
        step_s = times[last].finish_s + problem.efficiency.step_overhead_s
        return Evaluation(
            layout=layout,
            step_time_s=step_s,
            breakdown=_breakdown(view, last, times[last], ends[last], step_s),
            stages=_stages(problem, view, times, shards),
            last=last,
            model_flop=self.model_flop,
            peak_flop_per_s=_peak_flop_per_s(problem, layout),
            num_chips=layout.num_chips,
            tokens=problem.job.global_batch_size * problem.job.sequence_length,
        )

    def step_seconds(self, layout: Layout) -> float:
        """The step time of ``evaluate`` alone."""
        view = frame(self.table, self.rows, layout)
        times, _ = self._times(view, shard_counts(view))
        latest = max(time.finish_s for time in times.values())
        return latest + self.problem.efficiency.step_overhead_s

    def run(self, layout: Layout, pipeline: int) -> PipelineRun:
        """Every pass of one pipeline, as ``evaluate`` times them."""
        view = frame(self.table, self.rows, layout)
        extra = _extra(self.problem, view, _sync(self.problem, view))
        return pipeline_run(self.problem, view, pipeline, extra.part(view.span(pipeline)))

    def _times(
        self, view: Frame, shards: Shards
    ) -> tuple[dict[Index, StageTime], dict[Index, StageEnd]]:
        problem, sync = self.problem, _sync(self.problem, view)
        extra = _extra(problem, view, sync)
        ends = stage_ends(problem, view, extra)
        exposed = _exposed_sync_s(problem, view, sync, shards)
        after = exposed, _optimizer_s(problem, view, shards)
        return _stage_times(view, ends, extra, after), ends


def evaluate(problem: Problem, layout: Layout) -> Evaluation:
    """Time and memory of one layout: a table with only its own options."""
    return evaluator_for(problem, layout).evaluate(layout)


def evaluator_for(problem: Problem, layout: Layout) -> Evaluator:
    """An evaluator of this layout alone; recent ones are kept."""
    options = (stage.option for pipeline in layout.pipelines for stage in pipeline.stages)
    return _evaluator(SameProblem(problem), tuple(dict.fromkeys(options)))


@lru_cache(maxsize=128)
def _evaluator(of: SameProblem, options: tuple[StageOption, ...]) -> Evaluator:
    return Evaluator.of(of.problem, options)


def _extra(problem: Problem, view: Frame, sync: Sync) -> Extra:
    """What ZeRO 2 and 3 add to every micro-batch of each stage."""
    passes = view.columns["forward_s"], view.columns["backward_s"]
    traffic = sync.reduce_s, sync.gather_s
    forward_s, backward_s = sharding_seconds(view.zero, passes, traffic, problem.efficiency)
    return Extra(forward_s=forward_s, backward_s=backward_s)


def _sync(problem: Problem, view: Frame) -> Sync:
    """Gradient sums and parameter gathers of each stage at the rate that the software reaches."""
    times = stage_sync(problem, view).values()
    whole = Sync(
        reduce_s=np.array([time.reduce_s for time in times]),
        gather_s=np.array([time.gather_s for time in times]),
    )
    return reached_sync(whole, view.zero, problem.efficiency)


def _stage_times(
    view: Frame,
    ends: Mapping[Index, StageEnd],
    extra: Extra,
    after: tuple[FloatArray, FloatArray],
) -> dict[Index, StageTime]:
    """after: exposed gradient sums and updates of each stage, (stages,)."""
    starts, times = _sync_starts(view, ends), dict[Index, StageTime]()
    columns = np.stack([extra.forward_s, extra.backward_s, *after], axis=1).tolist()
    for (index, costs), (forward_s, backward_s, sync_s, update_s) in zip(
        view.costs.items(), columns, strict=True
    ):
        times[index] = StageTime(
            forward_s=costs.forward_s,
            backward_s=costs.backward_s,
            tp_s=costs.tp_s,
            cp_s=costs.cp_s,
            ep_s=costs.ep_s,
            sharded_weights_s=forward_s + backward_s,
            sharded_forward_s=forward_s,
            end_s=ends[index].end_s,
            wait_s=starts[index] - ends[index].end_s,
            sync_s=sync_s,
            optimizer_s=update_s,
            finish_s=starts[index] + sync_s + update_s,
        )
    return times


def _sync_starts(view: Frame, ends: Mapping[Index, StageEnd]) -> dict[Index, float]:
    """When all stages that share a layer with this one have ended."""
    starts = {index: end.end_s for index, end in ends.items()}
    for segment in view.segments:
        if len(segment.holders) < 2:
            continue
        latest = max(ends[index].end_s for index in segment.holders)
        for index in segment.holders:
            starts[index] = max(starts[index], latest)
    return starts


def _exposed_sync_s(problem: Problem, view: Frame, sync: Sync, shards: Shards) -> FloatArray:
    """What the last backward and the next forward of each stage do not hide."""
    passes = view.columns["forward_s"], view.columns["backward_s"]
    layers = np.array([float(stage.num_layers) for stage in view.stages.values()])
    exposed = exposed_sync_s(sync, view.zero, *passes, problem.efficiency)
    return exposed + pieces_s(layers, shards.dense, view.zero, problem.efficiency)


def _optimizer_s(problem: Problem, view: Frame, shards: Shards) -> FloatArray:
    """Update of each stage's share on one chip."""
    rates = _by_pool(problem, view.layout, lambda pool: pool.chip.streaming_bytes_per_s())
    held = view.columns["dense"], view.columns["expert"]
    update_s = optimizer_s(held, shards, view.zero, np.array(rates), problem.efficiency)
    on_host = _optimizer_on_host(view)
    if not on_host.any():
        return update_s
    backward_s = view.columns["backward_s"]
    of_job = problem.job, problem.efficiency
    return np.where(
        on_host, host_optimizer_s(held, shards, view.zero, backward_s, *of_job), update_s
    )


def _optimizer_on_host(view: Frame) -> NDArray[np.bool_]:
    return np.array([stage.option.optimizer_on_host for stage in view.stages.values()])


def _by_pool(problem: Problem, layout: Layout, number: Callable[[Pool], float]) -> list[float]:
    """A number of the pool of each stage."""
    names = [stage.option.pool for pipeline in layout.pipelines for stage in pipeline.stages]
    known = {name: number(problem.cluster.pool(name)) for name in dict.fromkeys(names)}
    return [known[name] for name in names]


def _stages(
    problem: Problem, view: Frame, times: Mapping[Index, StageTime], shards: Shards
) -> tuple[tuple[StageEvaluation, ...], ...]:
    kept = [_kept(view, index) for index in view.stages]
    evaluated = [
        StageEvaluation(stage=stage, time=time, memory=memory, in_flight=one.chunks)
        for stage, time, memory, one in zip(
            view.stages.values(),
            times.values(),
            _memory(problem, view, shards, kept),
            kept,
            strict=True,
        )
    ]
    return tuple(tuple(evaluated[view.span(d)]) for d in range(len(view.layout.pipelines)))


def _kept(view: Frame, index: Index) -> Kept:
    """Micro-batches (chunks of them, when interleaved) in flight and their activations."""
    schedule, pipeline = view.layout.schedule, view.layout.pipelines[index[0]]
    shape = len(pipeline.stages), index[1], pipeline.microbatches
    kind, chunks = schedule_kind(schedule.kind), schedule.virtual_stages
    if chunks > 1:
        costs = view.chunks[index]
        if kind.program is None:
            return kept_interleaved(most_counts(*shape, chunks), costs)
        return kept_apart(kind.program, shape, costs)
    if kind.program is not None:
        return kept_apart(kind.program, shape, (view.costs[index],))
    in_flight = kind.in_flight(*shape)
    return Kept(chunks=in_flight, activation_bytes=in_flight * view.costs[index].activation_bytes)


def _memory(
    problem: Problem, view: Frame, shards: Shards, kept: Sequence[Kept]
) -> list[StageMemory]:
    """Bytes of one chip of each stage."""
    columns, rows = view.columns, list(view.rows.values())
    held, zero = (columns["dense"], columns["expert"]), view.zero.astype(np.float64)
    static = static_bytes(*held, shards, zero, problem.job)
    trained = problem.efficiency.trained_share
    terms = {
        "weights": static.weights,
        "gradients": trained * static.gradients,
        "optimizer": np.where(_optimizer_on_host(view), 0.0, trained * static.optimizer),
        "activations": np.array([one.activation_bytes for one in kept]),
        "transient": columns["transient_bytes"],
        "fixed": view.table.fixed_bytes[rows],
        "capacity": view.table.capacity_bytes[rows],
    }
    stages = zip(*(term.tolist() for term in terms.values()), strict=True)
    return [StageMemory(**dict(zip(terms, own, strict=True))) for own in stages]


def _breakdown(
    view: Frame, last: Index, time: StageTime, end: StageEnd, step_s: float
) -> dict[str, float]:
    """Seconds of the step seen from the stage that finishes last; they sum to ``step_s``."""
    pipeline = view.layout.pipelines[last[0]]
    visits = visits_of(view.layout.schedule, len(pipeline.stages), pipeline.microbatches)
    parts = {"tp": visits * time.tp_s, "cp": visits * time.cp_s, "ep": visits * time.ep_s}
    compute = visits * (time.forward_s + time.backward_s) - sum(parts.values())
    parts["ep"] -= end.hidden_s
    sharded = visits * time.sharded_weights_s
    busy = compute + sum(parts.values()) + sharded
    known = {
        "compute": compute,
        **parts,
        "pp": end.end_s - end.without_hops_s,
        "dp": sharded + time.sync_s,
        "bubble": end.without_hops_s - busy + time.wait_s,
        "optimizer": time.optimizer_s,
    }
    return known | {"other": step_s - sum(known.values())}


def _peak_flop_per_s(problem: Problem, layout: Layout) -> float:
    """Dense peak of the chips used, in the job's precision."""
    peaks = _by_pool(problem, layout, lambda pool: pool.chip.peak(problem.job.precision))
    chips = [p.count * stage.option.num_chips for p in layout.pipelines for stage in p.stages]
    return sum(n * peak for n, peak in zip(chips, peaks, strict=True))
