"""The evaluator: time and memory of one layout. Nothing else computes a step time.

Per pipeline the schedule is simulated event by event with each stage's forward and backward times
and the hand-overs between stages. A stage's gradients are summed once all stages that share a
layer with it have finished their last backward; then it updates its parameters. The step ends
when the last stage is done.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from costmodel import holders as holding
from costmodel.efficiency import DEFAULT_EFFICIENCY, Efficiency
from costmodel.evaluation import Evaluation, StageEvaluation, StageMemory, StageTime
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.memory import Shards, static_bytes
from costmodel.model.flops import flops_per_token
from costmodel.model.graph import ModelGraph
from costmodel.schedules.registry import schedule as schedule_kind
from costmodel.stage_costs import stage_table
from costmodel.stage_table import StageTable, Terms
from costmodel.synchronisation import NO_SYNC, Holding, SyncTime, segment_sync, tied_sync
from costmodel.transfers import transfer_seconds

EVALUATOR_VERSION = "1"
"""Changes whenever the same layout would get another step time."""

Index = tuple[int, int]
"""(pipeline, stage)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A model, a cluster and a job: what layouts are evaluated for."""

    model: ModelGraph
    cluster: Cluster
    job: Job
    efficiency: Efficiency = DEFAULT_EFFICIENCY


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Evaluates layouts of one problem whose stage options are rows of one table."""

    problem: Problem
    table: StageTable
    rows: Mapping[StageOption, int] = field(repr=False)

    @classmethod
    def of(cls, problem: Problem, options: Iterable[StageOption]) -> "Evaluator":
        """Builds the table of these options (each once)."""
        distinct = tuple(dict.fromkeys(options))
        table = stage_table(
            problem.model, problem.cluster, problem.job, distinct, problem.efficiency
        )
        return cls(problem=problem, table=table, rows={o: r for r, o in enumerate(distinct)})

    @cached_property
    def model_flop(self) -> float:
        """Arithmetic of one step, without recomputation."""
        job = self.problem.job
        tokens = job.global_batch_size * job.sequence_length
        return tokens * flops_per_token(self.problem.model, job.sequence_length)

    def evaluate(self, layout: Layout) -> Evaluation:
        """Time and memory of a layout that obeys the rules of ``costmodel.layout.rules``."""
        return _Run(self, layout).evaluation()


def evaluate(problem: Problem, layout: Layout) -> Evaluation:
    """Time and memory of one layout: a table with only its own options."""
    options = (s.option for p in layout.pipelines for s in p.stages)
    return Evaluator.of(problem, options).evaluate(layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCosts:
    """One stage's row of the table, its layers and end blocks added up; plain numbers."""

    forward_s: float
    backward_s: float
    tp_s: float
    cp_s: float
    ep_s: float
    activation_bytes: float
    dense: float
    expert: float
    transient_bytes: float


def stage_costs(table: StageTable, row: int, stage: Stage) -> StageCosts:
    """Costs of one stage from the table. A stage with both tied ends keeps that weight once."""
    parts = [(table.layers, (row, stop), (row, start)) for start, stop in stage.chunks]

    def total(name: str) -> float:
        value = sum(float(getattr(t, name)[b] - getattr(t, name)[a]) for t, b, a in parts)
        return value + sum(float(getattr(end, name)[row]) for end in _ends(table, stage))

    transient = max(
        [float(table.transient_bytes[row, a:b].max()) for a, b in stage.chunks if b > a]
        + [float(table.embedding_transient_bytes[row])] * stage.embedding
        + [float(table.head_transient_bytes[row])] * stage.head
    )
    both = stage.embedding and stage.head
    return StageCosts(
        forward_s=total("forward_s"),
        backward_s=total("backward_s"),
        tp_s=total("forward_tp_s") + total("backward_tp_s"),
        cp_s=total("forward_cp_s") + total("backward_cp_s"),
        ep_s=total("forward_ep_s") + total("backward_ep_s"),
        activation_bytes=total("activation_bytes"),
        dense=total("dense_parameters") - both * float(table.tied_parameters[row]),
        expert=total("expert_parameters"),
        transient_bytes=transient,
    )


def _ends(table: StageTable, stage: Stage) -> list[Terms]:
    ends = [table.embedding] * stage.embedding + [table.head] * stage.head
    return ends + [table.mtp] * (stage.mtp > 0)


class _Run:
    """The evaluation of one layout, in the order of ``evaluation``; nothing outlives it."""

    def __init__(self, evaluator: Evaluator, layout: Layout) -> None:
        self.problem = evaluator.problem
        self.table = evaluator.table
        self.rows = evaluator.rows
        self.model_flop = evaluator.model_flop
        self.layout = layout
        self.stages: dict[Index, Stage] = {
            (d, i): s for d, p in enumerate(layout.pipelines) for i, s in enumerate(p.stages)
        }
        self.costs = {
            index: stage_costs(self.table, self.rows[stage.option], stage)
            for index, stage in self.stages.items()
        }
        self.segments = holding.segments(layout)

    def evaluation(self) -> Evaluation:
        shards = self._shards()
        syncs = self._syncs()
        gathers = {index: self._sharded_weights_s(index, syncs[index]) for index in self.stages}
        ends, ideal = self._ends(gathers)
        times = self._times(ends, syncs, shards, gathers)
        last = max(times, key=lambda index: (times[index].finish_s, index))
        step = times[last].finish_s + self.problem.efficiency.step_overhead_s
        evaluated = {
            index: StageEvaluation(
                stage=stage,
                time=times[index],
                memory=self._memory(index, shards[index]),
                in_flight=self._in_flight(index),
            )
            for index, stage in self.stages.items()
        }
        job = self.problem.job
        return Evaluation(
            layout=self.layout,
            step_time_s=step,
            breakdown=self._breakdown(last, times[last], ideal[last], step),
            stages=tuple(
                tuple(evaluated[d, i] for i in range(len(p.stages)))
                for d, p in enumerate(self.layout.pipelines)
            ),
            last=last,
            model_flop=self.model_flop,
            peak_flop_per_s=self._peak_flop_per_s(),
            num_chips=self._num_chips(),
            tokens=job.global_batch_size * job.sequence_length,
        )

    def _shards(self) -> dict[Index, tuple[float, float]]:
        """Optimizer parameters (dense, expert) per chip after sharding, as shares of what it has.

        Returned as the effective shard counts, weighted over the stage's segments.
        """
        left = dict.fromkeys(self.stages, (0.0, 0.0))
        for segment in self._all_segments():
            dense_ranks = holding.data_parallel_ranks(self.layout, segment.holders)
            expert_ranks = holding.expert_data_parallel_ranks(self.layout, segment.holders)
            for index in segment.holders:
                held = self._held(index, segment)
                dense, expert = left[index]
                left[index] = (dense + held.dense / dense_ranks, expert + held.expert / expert_ranks)
        return {
            index: (_ratio(self.costs[index].dense, d), _ratio(self.costs[index].expert, e))
            for index, (d, e) in left.items()
        }

    def _all_segments(self) -> tuple[holding.Segment, ...]:
        """Layer segments, then the embedding (start -1) and the head (start -2)."""
        first = tuple(i for i, s in self.stages.items() if s.embedding)
        last = tuple(i for i, s in self.stages.items() if s.head)
        return (
            *self.segments,
            holding.Segment(start=_EMBEDDING, stop=_EMBEDDING, holders=first),
            holding.Segment(start=_HEAD, stop=_HEAD, holders=last),
        )

    def _held(self, index: Index, segment: holding.Segment) -> Holding:
        stage, row, table = self.stages[index], self.rows[self.stages[index].option], self.table
        if segment.start == _EMBEDDING:
            return _holding_of([table.embedding], row, 0.0)
        if segment.start == _HEAD:
            ends = [table.head] + [table.mtp] * (stage.mtp > 0)
            tied = float(table.tied_parameters[row]) if stage.embedding else 0.0
            return _holding_of(ends, row, tied)
        dense, expert = table.layers.dense_parameters, table.layers.expert_parameters
        return Holding(
            dense=float(dense[row, segment.stop] - dense[row, segment.start]),
            expert=float(expert[row, segment.stop] - expert[row, segment.start]),
        )

    def _syncs(self) -> dict[Index, SyncTime]:
        job, cluster = self.problem.job, self.problem.cluster
        totals = dict.fromkeys(self.stages, NO_SYNC)
        for segment in self._all_segments():
            if not segment.holders:
                continue
            held = [self._held(index, segment) for index in segment.holders]
            time = segment_sync(
                cluster, self.layout, segment, held, job.gradient_bytes, job.weight_bytes
            )
            for index in segment.holders:
                totals[index] = _added(totals[index], time)
        for index, seconds in self._tied().items():
            totals[index] = _added(totals[index], SyncTime(reduce_s=seconds, gather_s=0.0))
        return totals

    def _tied(self) -> dict[Index, float]:
        if not self.problem.model.ties:
            return {}
        seconds: dict[Index, float] = {}
        for d, pipeline in enumerate(self.layout.pipelines):
            last = len(pipeline.stages) - 1
            if last == 0:
                continue
            first, end = pipeline.stages[0].option, pipeline.stages[last].option
            tied = float(self.table.tied_parameters[self.rows[end]])
            if tied > 0:
                payload = tied * self.problem.job.gradient_bytes
                time = tied_sync(self.problem.cluster, first, end, payload)
                seconds |= {(d, 0): time, (d, last): time}
        return seconds

    def _sharded_weights_s(self, index: Index, sync: SyncTime) -> float:
        """Exposed ZeRO-3 traffic of one micro-batch: gathers forward and backward, one scatter.

        ``max(0, comm - 0.85 compute) + 0.21 comm`` (pooled fit over published FSDP runs).
        """
        if self.stages[index].option.zero < 3:
            return 0.0
        eff, costs = self.problem.efficiency, self.costs[index]
        comm = 2.0 * sync.gather_s + sync.reduce_s
        hidden = eff.sharded_weights_overlap * (costs.forward_s + costs.backward_s)
        return max(0.0, comm - hidden) + eff.sharded_weights_exposed * comm

    def _ends(
        self, gathers: Mapping[Index, float]
    ) -> tuple[dict[Index, float], dict[Index, float]]:
        """End of each stage's last backward, with and without hand-over times."""
        schedule = schedule_kind(self.layout.schedule.kind)
        ends: dict[Index, float] = {}
        ideal: dict[Index, float] = {}
        for d, pipeline in enumerate(self.layout.pipelines):
            size = len(pipeline.stages)
            costs = [self.costs[d, i] for i in range(size)]
            extra = np.array([gathers[d, i] for i in range(size)])
            overhead = self.problem.efficiency.microbatch_overhead_s
            forward = np.array([c.forward_s for c in costs]) + extra / 3.0 + overhead
            backward = np.array([c.backward_s for c in costs]) + extra * 2.0 / 3.0
            hops = self._hops(pipeline)
            none = np.zeros_like(hops)
            timed = schedule.simulate(forward, backward, hops, hops, pipeline.microbatches)[1]
            free = schedule.simulate(forward, backward, none, none, pipeline.microbatches)[1]
            ends |= {(d, i): float(timed[i]) for i in range(size)}
            ideal |= {(d, i): float(free[i]) for i in range(size)}
        return ends, ideal

    def _hops(self, pipeline: Pipeline) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        pairs = zip(pipeline.stages, pipeline.stages[1:], strict=False)
        return np.array([self._hop(a.option, b.option) for a, b in pairs])

    def _hop(self, sender: StageOption, receiver: StageOption) -> float:
        received = float(self.table.boundary_bytes[self.rows[receiver]])
        sent = received * receiver.num_chips / sender.num_chips
        return transfer_seconds(
            self.problem.cluster, sender, receiver, received, sent, self.problem.efficiency
        )

    def _times(
        self,
        ends: Mapping[Index, float],
        syncs: Mapping[Index, SyncTime],
        shards: Mapping[Index, tuple[float, float]],
        gathers: Mapping[Index, float],
    ) -> dict[Index, StageTime]:
        starts = self._starts(ends)
        eff = self.problem.efficiency
        times: dict[Index, StageTime] = {}
        for index, costs in self.costs.items():
            sync = syncs[index]
            # ZeRO-3 already moves gradients and weights during the micro-batches.
            done = self.stages[index].option.zero >= 3
            reduce_s = 0.0 if done else max(0.0, sync.reduce_s - eff.sync_overlap * costs.backward_s)
            gather_s = 0.0 if done else max(0.0, sync.gather_s - eff.sync_overlap * costs.forward_s)
            optimizer_s = self._optimizer_s(index, shards[index])
            wait_s = starts[index] - ends[index]
            times[index] = StageTime(
                forward_s=costs.forward_s,
                backward_s=costs.backward_s,
                tp_s=costs.tp_s,
                cp_s=costs.cp_s,
                ep_s=costs.ep_s,
                sharded_weights_s=gathers[index],
                end_s=ends[index],
                wait_s=wait_s,
                sync_s=reduce_s + gather_s,
                optimizer_s=optimizer_s,
                finish_s=starts[index] + reduce_s + gather_s + optimizer_s,
            )
        return times

    def _starts(self, ends: Mapping[Index, float]) -> dict[Index, float]:
        """When all stages that share a layer with this one have ended."""
        starts = dict(ends)
        for segment in self._all_segments():
            latest = max((ends[index] for index in segment.holders), default=0.0)
            for index in segment.holders:
                starts[index] = max(starts[index], latest)
        return starts

    def _optimizer_s(self, index: Index, shards: tuple[float, float]) -> float:
        """Memory-bound update of the chip's share: ``34 bytes x parameters / bandwidth``."""
        option, costs = self.stages[index].option, self.costs[index]
        dense, expert = shards if option.zero >= 1 else (1.0, 1.0)
        parameters = costs.dense / dense + costs.expert / expert
        rate = self.problem.cluster.pool(option.pool).chip.streaming_bytes_per_s()
        return self.problem.efficiency.optimizer_bytes_per_parameter * parameters / rate

    def _in_flight(self, index: Index) -> int:
        d, i = index
        pipeline = self.layout.pipelines[d]
        schedule = schedule_kind(self.layout.schedule.kind)
        return schedule.in_flight(len(pipeline.stages), i, pipeline.microbatches)

    def _memory(self, index: Index, shards: tuple[float, float]) -> StageMemory:
        option, costs, row = self.stages[index].option, self.costs[index], None
        row = self.rows[option]
        static = static_bytes(
            np.float64(costs.dense),
            np.float64(costs.expert),
            Shards(dense=np.float64(shards[0]), expert=np.float64(shards[1])),
            np.float64(option.zero),
            self.problem.job,
        )
        return StageMemory(
            weights=float(static.weights),
            gradients=float(static.gradients),
            optimizer=float(static.optimizer),
            activations=self._in_flight(index) * costs.activation_bytes,
            transient=costs.transient_bytes,
            fixed=float(self.table.fixed_bytes[row]),
            capacity=float(self.table.capacity_bytes[row]),
        )

    def _breakdown(
        self, last: Index, time: StageTime, ideal_end_s: float, step_s: float
    ) -> dict[str, float]:
        microbatches = self.layout.pipelines[last[0]].microbatches
        parts = {
            "tp": microbatches * time.tp_s,
            "cp": microbatches * time.cp_s,
            "ep": microbatches * time.ep_s,
        }
        compute = microbatches * (time.forward_s + time.backward_s) - sum(parts.values())
        sharded = microbatches * time.sharded_weights_s
        busy = compute + sum(parts.values()) + sharded
        known = {
            "compute": compute,
            **parts,
            "pp": time.end_s - ideal_end_s,
            "dp": sharded + time.sync_s,
            "bubble": ideal_end_s - busy + time.wait_s,
            "optimizer": time.optimizer_s,
        }
        return known | {"other": step_s - sum(known.values())}

    def _peak_flop_per_s(self) -> float:
        cluster, precision = self.problem.cluster, self.problem.job.precision
        return sum(
            p.count * s.option.num_chips * cluster.pool(s.option.pool).chip.peak(precision)
            for p in self.layout.pipelines
            for s in p.stages
        )

    def _num_chips(self) -> int:
        return sum(
            p.count * sum(s.option.num_chips for s in p.stages) for p in self.layout.pipelines
        )


_EMBEDDING, _HEAD = -1, -2


def _holding_of(ends: Sequence[Terms], row: int, tied: float) -> Holding:
    return Holding(
        dense=sum(float(e.dense_parameters[row]) for e in ends) - tied,
        expert=sum(float(e.expert_parameters[row]) for e in ends),
    )


def _ratio(held: float, after: float) -> float:
    return held / after if after > 0 else 1.0


def _added(a: SyncTime, b: SyncTime) -> SyncTime:
    return SyncTime(reduce_s=a.reduce_s + b.reduce_s, gather_s=a.gather_s + b.gather_s)
