"""When each stage of each pipeline ends its last backward."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costmodel.errors import InputError
from costmodel.frame import Frame, Index
from costmodel.layout.values import Pipeline, Schedule, StageOption
from costmodel.network.sharding import ShardingTime
from costmodel.network.transfers import transfer_seconds
from costmodel.problem import Problem
from costmodel.schedules.kind import FloatArray, Interleaving
from costmodel.schedules.registry import schedule as schedule_kind
from costmodel.stage.chunks import chunk_costs


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnd:
    """Seconds from the start of the step to a stage's last backward.

    end_s: as simulated. without_hops_s: the same if hand-overs between stages took no time.
    """

    end_s: float
    without_hops_s: float


def stage_ends(
    problem: Problem, view: Frame, sharding: Mapping[Index, ShardingTime]
) -> dict[Index, StageEnd]:
    """Simulates every pipeline. sharding: what ZeRO 2 and 3 add to every micro-batch."""
    ends: dict[Index, StageEnd] = {}
    for d, pipeline in enumerate(view.layout.pipelines):
        indices = [(d, i) for i in range(len(pipeline.stages))]
        extra = (
            np.array([sharding[index].forward_s for index in indices]),
            np.array([sharding[index].backward_s for index in indices]),
        )
        if view.layout.schedule.virtual_stages > 1:
            timed, ideal = _interleaved_ends(problem, view, d, extra)
        else:
            timed, ideal = _ends(problem, view, d, extra)
        for index, end, free in zip(indices, timed, ideal, strict=True):
            ends[index] = StageEnd(end_s=float(end), without_hops_s=float(free))
    return ends


def _ends(
    problem: Problem, view: Frame, d: int, extra: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, ...]:
    """Ends of the stages with hand-overs and without."""
    schedule = schedule_kind(view.layout.schedule.kind)
    pipeline = view.layout.pipelines[d]
    indices = [(d, i) for i in range(len(pipeline.stages))]
    forward = np.array([view.costs[index].forward_s for index in indices]) + extra[0]
    forward = forward + problem.efficiency.microbatch_overhead_s
    backward = np.array([view.costs[index].backward_s for index in indices]) + extra[1]
    hops = hop_seconds(problem, view, pipeline, d)
    none = np.zeros_like(hops)
    timed = schedule.simulate(forward, backward, hops, hops, pipeline.microbatches)[1]
    ideal = schedule.simulate(forward, backward, none, none, pipeline.microbatches)[1]
    return timed, ideal


def _interleaved_ends(
    problem: Problem, view: Frame, d: int, extra: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, ...]:
    """The same for stages of several chunks; what is counted per stage is spread evenly."""
    v, pipeline = view.layout.schedule.virtual_stages, view.layout.pipelines[d]
    simulate = interleaving(view.layout.schedule).simulate
    stages = [
        chunk_costs(view.table, view.rows[d, i], stage) for i, stage in enumerate(pipeline.stages)
    ]
    shared = tuple(np.tile(part, v) / v for part in extra)
    forward = np.array([stage[k].forward_s for k in range(v) for stage in stages]) + shared[0]
    forward = forward + problem.efficiency.microbatch_overhead_s / v
    backward = np.array([stage[k].backward_s for k in range(v) for stage in stages])
    backward = backward + shared[1]
    ring = np.append(hop_seconds(problem, view, pipeline, d), _wrap_seconds(problem, view, d))
    hops = np.tile(ring, v)[:-1]
    none = np.zeros_like(hops)
    timed = simulate(forward, backward, hops, hops, pipeline.microbatches, v)[1]
    ideal = simulate(forward, backward, none, none, pipeline.microbatches, v)[1]
    return timed, ideal


def interleaving(schedule: Schedule) -> Interleaving:
    """The functions of a schedule for several chunks a stage. InputError if it has none."""
    found = schedule_kind(schedule.kind).interleaving
    if found is None:
        raise InputError.of(
            field="/schedule/virtual_stages",
            value=schedule.virtual_stages,
            rule=f"must be 1 with the schedule {schedule.kind}",
            fix="use the schedule interleaved",
        )
    return found


def _wrap_seconds(problem: Problem, view: Frame, d: int) -> float:
    """Seconds of the hand-over from the last stage's chunk to the first stage's next one."""
    stages = view.layout.pipelines[d].stages
    if len(stages) == 1:
        return 0.0
    return _hop_seconds(problem, view, stages[-1].option, stages[0].option, view.rows[d, 0])


def hop_seconds(problem: Problem, view: Frame, pipeline: Pipeline, d: int) -> NDArray[np.float64]:
    """Seconds of the hand-over after each stage but the last, shape (p - 1,)."""
    hops = np.zeros(len(pipeline.stages) - 1)
    for i in range(len(hops)):
        sender, receiver = pipeline.stages[i].option, pipeline.stages[i + 1].option
        hops[i] = _hop_seconds(problem, view, sender, receiver, view.rows[d, i + 1])
    return hops


def _hop_seconds(
    problem: Problem, view: Frame, sender: StageOption, receiver: StageOption, row: int
) -> float:
    received = float(view.table.boundary_bytes[row])
    sent = received * receiver.num_chips / sender.num_chips
    return transfer_seconds(problem.cluster, sender, receiver, received, sent, problem.efficiency)
