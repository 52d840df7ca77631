"""Gradient sums and parameter gathers of every stage of a layout."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from costmodel.frame import Frame, Holding, Index
from costmodel.hardware.values import Cluster
from costmodel.holders import Segment
from costmodel.job import Job
from costmodel.layout.values import Layout, StageOption
from costmodel.model.placement import Collective
from costmodel.network.phases import Side, phase_seconds
from costmodel.problem import Problem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class SyncTime(NamedTuple):
    """Seconds to sum the gradients and to gather the parameters, before any overlap."""

    reduce_s: float
    gather_s: float


NO_SYNC = SyncTime(reduce_s=0.0, gather_s=0.0)

BY_LAYER = 2
"""ZeRO stage from which each layer's gradients and weights travel by themselves."""


def stage_sync(problem: Problem, view: Frame) -> dict[Index, SyncTime]:
    """Time of every stage's gradient sums and parameter gathers, before any overlap.

    A stage takes part in the groups of all segments that it holds, one after the other; groups of
    different stages run at once. So it needs its own busy time, and waits for the partners of its
    groups as long as they are busy.
    """
    own = dict.fromkeys(view.stages, NO_SYNC)
    for segment, times in zip(view.segments, _segment_times(problem, view), strict=True):
        for index, time in zip(segment.holders, times, strict=True):
            own[index] = _added(own[index], time)
    for index, seconds in _tied(problem, view).items():
        own[index] = _added(own[index], SyncTime(reduce_s=seconds, gather_s=0.0))
    return _with_partners(view, own)


def _segment_times(problem: Problem, view: Frame) -> Iterator[list[SyncTime]]:
    """``segment_sync`` of every segment, once for all that are alike."""
    known: dict[object, list[SyncTime]] = {}
    for segment, held in zip(view.segments, view.held, strict=True):
        kinds = tuple((index[0], view.rows[index]) for index in segment.holders)
        key = segment.num_layers, kinds, held
        if key not in known:
            known[key] = segment_sync(problem, view.layout, segment, held)
        yield known[key]


def _with_partners(view: Frame, own: Mapping[Index, SyncTime]) -> dict[Index, SyncTime]:
    total = dict(own)
    for segment in view.segments:
        if len(segment.holders) < 2:
            continue
        reduce_s = max(own[index].reduce_s for index in segment.holders)
        gather_s = max(own[index].gather_s for index in segment.holders)
        for index in segment.holders:
            total[index] = SyncTime(
                reduce_s=max(total[index].reduce_s, reduce_s),
                gather_s=max(total[index].gather_s, gather_s),
            )
    return total


def _added(a: SyncTime, b: SyncTime) -> SyncTime:
    return SyncTime(reduce_s=a.reduce_s + b.reduce_s, gather_s=a.gather_s + b.gather_s)


def _tied(problem: Problem, view: Frame) -> dict[Index, float]:
    """Seconds that copies of one weight on two stages of a pipeline need to sum its gradient."""
    seconds: dict[Index, float] = {}
    for a, b, parameters in _shared_weights(view):
        ends = view.stages[a].option, view.stages[b].option
        time = tied_sync(problem.cluster, *ends, parameters * problem.job.gradient_bytes)
        for index in (a, b):
            seconds[index] = seconds.get(index, 0.0) + time
    return seconds


def _shared_weights(view: Frame) -> Iterator[tuple[Index, Index, float]]:
    """Pairs of stages that hold copies of a weight, with its parameters on one chip."""
    table = view.table
    for d, pipeline in enumerate(view.layout.pipelines):
        where = {
            "embedding": [i for i, s in enumerate(pipeline.stages) if s.embedding],
            "head": [i for i, s in enumerate(pipeline.stages) if s.head],
            "mtp": [i for i, s in enumerate(pipeline.stages) if s.mtp > 0],
        }
        for owner, copy, held in (
            ("embedding", "head", table.tied_parameters),
            ("embedding", "mtp", table.mtp_embedding_parameters),
            ("head", "mtp", table.mtp_head_parameters),
        ):
            for i, j in product(where[owner], where[copy]):
                parameters = float(held[view.rows[d, j]])
                if i != j and parameters > 0:
                    yield (d, i), (d, j), parameters


def parcels(zero: IntArray, layers: IntArray, job: Job) -> tuple[FloatArray, IntArray]:
    """Bytes a parameter that are gathered, and in how many parts the layers of a run travel.

    With ZeRO 0 the gradients are all-reduced (both halves carry gradients), else reduce-scattered
    and the updated parameters gathered. From ZeRO 2 on every layer is summed and gathered by
    itself, so that each has its latency.
    """
    gathered = np.where(zero > 0, float(job.weight_bytes), float(job.gradient_bytes))
    return gathered, np.where(zero >= BY_LAYER, layers, 1)


def segment_sync(
    problem: Problem, layout: Layout, segment: Segment, holdings: Sequence[Holding]
) -> list[SyncTime]:
    """Time that each holder of a segment is busy with its groups.

    Dense and expert weights have different groups.
    """
    job = problem.job
    options = [layout.pipelines[d].stages[i].option for d, i in segment.holders]
    counts = [layout.pipelines[d].count for d, _ in segment.holders]
    zero = max((option.zero for option in options), default=0)
    each = parcels(np.asarray(zero), np.asarray(segment.num_layers), job)
    gathered, parts = float(each[0]), int(each[1])
    dense = [h.dense for h in holdings]
    expert = [h.expert for h in holdings]
    totals = [NO_SYNC] * len(options)
    for parameters, side in ((dense, _dense_side), (expert, _expert_side)):
        if not any(parameters):
            continue
        rows = list(zip(options, counts, parameters, strict=True))
        down = [side(o, n, q * job.gradient_bytes / parts) for o, n, q in rows]
        up = [side(o, n, q * gathered / parts) for o, n, q in rows]
        reduce_s = phase_seconds(problem.cluster, down, Collective.REDUCE_SCATTER)
        gather_s = phase_seconds(problem.cluster, up, Collective.ALL_GATHER)
        totals = [
            _added(
                t, SyncTime(reduce_s=parts * reduce_s[o.pool], gather_s=parts * gather_s[o.pool])
            )
            for t, o in zip(totals, options, strict=True)
        ]
    return totals if zero > 0 else [_reduced(t) for t in totals]


def _reduced(time: SyncTime) -> SyncTime:
    return SyncTime(reduce_s=time.reduce_s + time.gather_s, gather_s=0.0)


def _dense_side(option: StageOption, count: int, payload_bytes: float) -> Side:
    ranks = count * option.replicas * option.cp
    return Side(pool=option.pool, ranks=ranks, stride=option.tp, payload_bytes=payload_bytes)


def _expert_side(option: StageOption, count: int, payload_bytes: float) -> Side:
    stride = option.ep * option.etp
    ranks = count * option.num_chips // stride
    return Side(pool=option.pool, ranks=ranks, stride=stride, payload_bytes=payload_bytes)


def tied_sync(
    cluster: Cluster, first: StageOption, last: StageOption, payload_bytes: float
) -> float:
    """Seconds to sum the gradient of a tied embedding between first and last stage.

    Each pipeline's two copies exchange ``payload_bytes`` per chip (both halves of an all-reduce).
    """
    sides = [
        Side(pool=o.pool, ranks=1, stride=o.num_chips, payload_bytes=payload_bytes)
        for o in (first, last)
    ]
    if first.pool == last.pool:
        sides = [
            Side(pool=first.pool, ranks=2, stride=first.num_chips, payload_bytes=payload_bytes)
        ]
    halves = (Collective.REDUCE_SCATTER, Collective.ALL_GATHER)
    return sum(max(phase_seconds(cluster, sides, half).values()) for half in halves)
