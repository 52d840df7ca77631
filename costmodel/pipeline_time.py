"""When each stage of each pipeline ends its last pass."""

from dataclasses import dataclass, replace

import numpy as np

from costmodel.errors import InputError
from costmodel.frame import Frame, Index
from costmodel.pipeline_seconds import Extra, PipelineSeconds, pipeline_seconds
from costmodel.problem import Problem
from costmodel.schedules.kind import FloatArray, Interleaving, ScheduleKind
from costmodel.schedules.replay import BESIDE, Lists, Times, lists_of, replay


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnd:
    """Seconds from the start of the step to the end of a stage's last pass.

    end_s: as simulated. without_hops_s: the same if hand-overs between stages took no time.
    hidden_s: exchanges of tokens that passes side by side hide.
    """

    end_s: float
    without_hops_s: float
    hidden_s: float = 0.0


def stage_ends(problem: Problem, view: Frame, extra: Extra) -> dict[Index, StageEnd]:
    """Simulates every pipeline. extra: what ZeRO 2 and 3 add on every stage."""
    ends: dict[Index, StageEnd] = {}
    for d in range(len(view.layout.pipelines)):
        seconds = pipeline_seconds(problem, view, d, extra.part(view.span(d)))
        each = _ends(seconds), _ends(without_hops(seconds)), hidden_seconds(seconds)
        for i, (end_s, ideal_s, hidden_s) in enumerate(np.stack(each, axis=1).tolist()):
            ends[d, i] = StageEnd(end_s=end_s, without_hops_s=ideal_s, hidden_s=hidden_s)
    return ends


def without_hops(seconds: PipelineSeconds) -> PipelineSeconds:
    """The same pipeline with hand-overs that take no time."""
    none = np.zeros_like(seconds.passes.up_s)
    return replace(seconds, passes=replace(seconds.passes, up_s=none, down_s=none))


def _ends(seconds: PipelineSeconds) -> FloatArray:
    """End of the last pass of every stage, by the schedule's own simulation."""
    kind, m, (forward, backward) = seconds.kind, seconds.microbatches, _parts(seconds)
    hops = seconds.passes.up_s[:-1], seconds.passes.down_s[:-1]
    if kind.program is not None and kind.program.simulate is not None:
        weight = seconds.passes.weight_s
        return kind.program.simulate(forward, backward - weight, weight, *hops, m)[1]
    if kind.program is not None:
        return pass_times(seconds)[1].ends
    if seconds.chunks > 1:
        simulate = interleaving(kind, seconds.chunks).simulate
        return simulate(forward, backward, *hops, m, seconds.chunks)[1]
    return kind.simulate(forward, backward, *hops, m)[1]


def _parts(seconds: PipelineSeconds) -> tuple[FloatArray, FloatArray]:
    return seconds.passes.forward_s, seconds.passes.backward_s


def pass_times(seconds: PipelineSeconds) -> tuple[Lists, Times]:
    """What every stage runs and when."""
    lists = lists_of(seconds.kind, seconds.depth, seconds.microbatches, seconds.chunks)
    return lists, replay(lists, seconds.passes)


def hidden_seconds(seconds: PipelineSeconds) -> FloatArray:
    """Seconds of exchanges that run beside other passes, by stage: work less busy time."""
    exchanges = seconds.passes.forward_ep_s.any() or seconds.passes.backward_ep_s.any()
    if seconds.kind.program is None or seconds.chunks == 1 or not exchanges:
        return np.zeros(seconds.depth)
    lists, times = pass_times(seconds)
    counted = lists.passes[:, :, BESIDE] != 1
    busy = np.where(counted, times.end_s - times.start_s, 0.0).sum(axis=1)
    work = seconds.visits * (seconds.passes.forward_s + seconds.passes.backward_s)
    return np.bincount(seconds.stages, weights=work, minlength=seconds.depth) - busy


def interleaving(kind: ScheduleKind, chunks: int) -> Interleaving:
    """The functions of a schedule for several chunks a stage. InputError if it has none."""
    if kind.interleaving is None:
        raise InputError.of(
            field="/schedule/virtual_stages",
            value=chunks,
            rule=f"must be 1 with the schedule {kind.name}",
            fix="use the schedule interleaved",
        )
    return kind.interleaving
