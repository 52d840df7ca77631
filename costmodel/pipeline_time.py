"""When each stage of each pipeline ends its last backward."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costmodel.frame import Frame, Index
from costmodel.layout.values import Pipeline
from costmodel.problem import Problem
from costmodel.schedules.registry import schedule as schedule_kind
from costmodel.transfers import transfer_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnd:
    """Seconds from the start of the step to a stage's last backward.

    end_s: as simulated. without_hops_s: the same if hand-overs between stages took no time.
    """

    end_s: float
    without_hops_s: float


def stage_ends(
    problem: Problem, view: Frame, sharded_weights_s: Mapping[Index, float]
) -> dict[Index, StageEnd]:
    """Simulates every pipeline. sharded_weights_s: ZeRO-3 traffic of one micro-batch, a third of
    which (one of three equal transfers) falls into the forward."""
    schedule = schedule_kind(view.layout.schedule.kind)
    ends: dict[Index, StageEnd] = {}
    for d, pipeline in enumerate(view.layout.pipelines):
        indices = [(d, i) for i in range(len(pipeline.stages))]
        extra = np.array([sharded_weights_s[index] for index in indices])
        forward = np.array([view.costs[index].forward_s for index in indices]) + extra / 3.0
        forward = forward + problem.efficiency.microbatch_overhead_s
        backward = np.array([view.costs[index].backward_s for index in indices]) + extra * 2.0 / 3.0
        hops = hop_seconds(problem, view, pipeline, d)
        none = np.zeros_like(hops)
        timed = schedule.simulate(forward, backward, hops, hops, pipeline.microbatches)[1]
        ideal = schedule.simulate(forward, backward, none, none, pipeline.microbatches)[1]
        for index, end, free in zip(indices, timed, ideal, strict=True):
            ends[index] = StageEnd(end_s=float(end), without_hops_s=float(free))
    return ends


def hop_seconds(problem: Problem, view: Frame, pipeline: Pipeline, d: int) -> NDArray[np.float64]:
    """Seconds of the hand-over after each stage but the last, shape (p - 1,)."""
    hops = np.zeros(len(pipeline.stages) - 1)
    for i in range(len(hops)):
        sender, receiver = pipeline.stages[i].option, pipeline.stages[i + 1].option
        received = float(view.table.boundary_bytes[view.rows[d, i + 1]])
        sent = received * receiver.num_chips / sender.num_chips
        hops[i] = transfer_seconds(
            problem.cluster, sender, receiver, received, sent, problem.efficiency
        )
    return hops
