"""The evaluator: time and memory of one layout. Nothing else computes a step time.

Per pipeline the schedule is simulated event by event with each stage's forward and backward times
and the hand-overs between stages. A stage's gradients are summed once all stages that share a
layer with it have finished their last backward; then it updates its parameters. The step ends
when the last stage is done.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from costmodel.after_backward import Sync, exposed_sync_s, optimizer_s, pieces_s, reached_sync
from costmodel.evaluation import Evaluation, StageEvaluation, StageMemory, StageTime
from costmodel.frame import Frame, Index, frame, shard_counts
from costmodel.layout.values import Layout, StageOption
from costmodel.memory import Shards, static_bytes
from costmodel.model.flops import flops_per_token
from costmodel.network.sharding import ShardingTime, sharding_time
from costmodel.network.synchronisation import SyncTime, stage_sync
from costmodel.pipeline_run import PipelineRun, pipeline_run
from costmodel.pipeline_seconds import visits_of
from costmodel.pipeline_time import StageEnd, stage_ends
from costmodel.problem import Problem
from costmodel.same import SameProblem
from costmodel.schedules.registry import schedule as schedule_kind
from costmodel.stage.chunks import Kept, chunk_costs, kept_apart, kept_interleaved
from costmodel.stage.costs import stage_table
from costmodel.stage.in_flight import most_counts
from costmodel.stage.table import StageTable

EVALUATOR_VERSION = "9"
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
        sharding = _sharding(self.problem, view, _syncs(self.problem, view))
        return pipeline_run(self.problem, view, pipeline, sharding)

    def _times(
        self, view: Frame, shards: Mapping[Index, tuple[float, float]]
    ) -> tuple[dict[Index, StageTime], dict[Index, StageEnd]]:
        problem, syncs = self.problem, _syncs(self.problem, view)
        sharding = _sharding(problem, view, syncs)
        ends = stage_ends(problem, view, sharding)
        return _stage_times(problem, view, ends, syncs, shards, sharding), ends


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


def _sharding(
    problem: Problem, view: Frame, syncs: Mapping[Index, SyncTime]
) -> dict[Index, ShardingTime]:
    """What ZeRO 2 and 3 add to every micro-batch of each stage."""
    return {
        index: sharding_time(stage.option.zero, view.costs[index], syncs[index], problem.efficiency)
        for index, stage in view.stages.items()
    }


def _syncs(problem: Problem, view: Frame) -> dict[Index, SyncTime]:
    """Gradient sums and parameter gathers at the rate that the software reaches."""
    syncs = stage_sync(problem, view)
    reached = reached_sync(_columns(syncs), _zero(view), problem.efficiency)
    pairs = zip(syncs, reached.reduce_s.tolist(), reached.gather_s.tolist(), strict=True)
    return {index: SyncTime(reduce_s=down, gather_s=up) for index, down, up in pairs}


def _columns(syncs: Mapping[Index, SyncTime]) -> Sync:
    return Sync(
        reduce_s=np.array([sync.reduce_s for sync in syncs.values()]),
        gather_s=np.array([sync.gather_s for sync in syncs.values()]),
    )


def _zero(view: Frame) -> NDArray[np.int64]:
    return np.array([stage.option.zero for stage in view.stages.values()])


def _stage_times(
    problem: Problem,
    view: Frame,
    ends: Mapping[Index, StageEnd],
    syncs: Mapping[Index, SyncTime],
    shards: Mapping[Index, tuple[float, float]],
    sharding: Mapping[Index, ShardingTime],
) -> dict[Index, StageTime]:
    starts = _sync_starts(view, ends)
    times: dict[Index, StageTime] = {}
    exposed = _exposed_sync_s(problem, view, syncs, shards)
    updates = _optimizer_s(problem, view, shards)
    for (index, costs), sync_s, update_s in zip(view.costs.items(), exposed, updates, strict=True):
        times[index] = StageTime(
            forward_s=costs.forward_s,
            backward_s=costs.backward_s,
            tp_s=costs.tp_s,
            cp_s=costs.cp_s,
            ep_s=costs.ep_s,
            sharded_weights_s=sharding[index].forward_s + sharding[index].backward_s,
            sharded_forward_s=sharding[index].forward_s,
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
        latest = max((ends[index].end_s for index in segment.holders), default=0.0)
        for index in segment.holders:
            starts[index] = max(starts[index], latest)
    return starts


def _exposed_sync_s(
    problem: Problem,
    view: Frame,
    syncs: Mapping[Index, SyncTime],
    shards: Mapping[Index, tuple[float, float]],
) -> list[float]:
    """What the last backward and the next forward of each stage do not hide."""
    forward = np.array([costs.forward_s for costs in view.costs.values()])
    backward = np.array([costs.backward_s for costs in view.costs.values()])
    layers = np.array([float(stage.num_layers) for stage in view.stages.values()])
    ranks, zero = np.array([shards[index][0] for index in view.stages]), _zero(view)
    exposed = exposed_sync_s(_columns(syncs), zero, forward, backward, problem.efficiency)
    return (exposed + pieces_s(layers, ranks, zero, problem.efficiency)).tolist()


def _optimizer_s(
    problem: Problem, view: Frame, shards: Mapping[Index, tuple[float, float]]
) -> list[float]:
    """Update of each stage's share on one chip."""
    sharded = _zero(view) >= 1
    held = np.array([(costs.dense, costs.expert) for costs in view.costs.values()])
    split = np.array([shards[index] for index in view.stages])
    dense, expert = (held / np.where(sharded[:, None], split, 1.0)).T
    pools = [problem.cluster.pool(stage.option.pool) for stage in view.stages.values()]
    rates = np.array([pool.chip.streaming_bytes_per_s() for pool in pools])
    return optimizer_s(dense, expert, rates, problem.efficiency).tolist()


def _stages(
    problem: Problem,
    view: Frame,
    times: Mapping[Index, StageTime],
    shards: Mapping[Index, tuple[float, float]],
) -> tuple[tuple[StageEvaluation, ...], ...]:
    def evaluated(d: int, i: int) -> StageEvaluation:
        kept = _kept(view, (d, i))
        memory = _stage_memory(problem, view, (d, i), shards[d, i], kept.activation_bytes)
        stage = view.stages[d, i]
        return StageEvaluation(stage=stage, time=times[d, i], memory=memory, in_flight=kept.chunks)

    return tuple(
        tuple(evaluated(d, i) for i in range(len(pipeline.stages)))
        for d, pipeline in enumerate(view.layout.pipelines)
    )


def _kept(view: Frame, index: Index) -> Kept:
    """Micro-batches (chunks of them, when interleaved) in flight and their activations."""
    schedule, pipeline = view.layout.schedule, view.layout.pipelines[index[0]]
    shape = len(pipeline.stages), index[1], pipeline.microbatches
    kind, chunks = schedule_kind(schedule.kind), schedule.virtual_stages
    if chunks > 1:
        costs = chunk_costs(view.table, view.rows[index], view.stages[index])
        if kind.program is None:
            return kept_interleaved(most_counts(*shape, chunks), costs)
        return kept_apart(kind.program, shape, costs)
    if kind.program is not None:
        return kept_apart(kind.program, shape, (view.costs[index],))
    in_flight = kind.in_flight(*shape)
    return Kept(chunks=in_flight, activation_bytes=in_flight * view.costs[index].activation_bytes)


def _stage_memory(
    problem: Problem,
    view: Frame,
    index: Index,
    shards: tuple[float, float],
    activation_bytes: float,
) -> StageMemory:
    costs, row = view.costs[index], view.rows[index]
    static = static_bytes(
        np.asarray(costs.dense),
        np.asarray(costs.expert),
        Shards(dense=np.asarray(shards[0]), expert=np.asarray(shards[1])),
        np.asarray(view.stages[index].option.zero, dtype=np.float64),
        problem.job,
    )
    return StageMemory(
        weights=float(static.weights),
        gradients=problem.efficiency.trained_share * float(static.gradients),
        optimizer=problem.efficiency.trained_share * float(static.optimizer),
        activations=activation_bytes,
        transient=costs.transient_bytes,
        fixed=float(view.table.fixed_bytes[row]),
        capacity=float(view.table.capacity_bytes[row]),
    )


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
    return sum(
        pipeline.count
        * stage.option.num_chips
        * problem.cluster.pool(stage.option.pool).chip.peak(problem.job.precision)
        for pipeline in layout.pipelines
        for stage in pipeline.stages
    )
