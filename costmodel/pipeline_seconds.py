"""How long each pass of a pipeline takes, and each hand-over between its stages."""

from dataclasses import dataclass

import numpy as np

from costmodel.frame import Frame
from costmodel.layout.values import Schedule
from costmodel.network.transfers import transfer_seconds
from costmodel.problem import Problem
from costmodel.schedules.kind import FloatArray, Route, ScheduleKind
from costmodel.schedules.passes import routes_of
from costmodel.schedules.registry import schedule as schedule_kind
from costmodel.schedules.replay import Seconds
from costmodel.stage.table import StageTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Seconds that ZeRO 2 and 3 add to every micro-batch on each stage, (p,)."""

    forward_s: FloatArray
    backward_s: FloatArray

    def part(self, span: slice) -> "Extra":
        """What it says of some of the stages."""
        return Extra(forward_s=self.forward_s[span], backward_s=self.backward_s[span])


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSeconds:
    """Seconds of one pipeline's passes, place by place along the ways of its micro-batches.

    With one way, ``passes.up_s[:-1]`` are the hand-overs from each place to the next.
    """

    kind: ScheduleKind
    chunks: int
    microbatches: int
    routes: tuple[Route, ...]
    passes: Seconds

    @property
    def depth(self) -> int:
        """Number of stages."""
        return 1 + max(stage for route in self.routes for stage, _ in route)

    @property
    def stages(self) -> tuple[int, ...]:
        """The stage of every place."""
        return tuple(stage for route in self.routes for stage, _ in route)

    @property
    def visits(self) -> int:
        """Micro-batches that visit a chunk."""
        return self.microbatches // len(self.routes)


def pipeline_seconds(problem: Problem, view: Frame, d: int, extra: Extra) -> PipelineSeconds:
    """Seconds of pipeline d. What is counted per stage is spread evenly over a stage's chunks."""
    schedule, pipeline = view.layout.schedule, view.layout.pipelines[d]
    kind = schedule_kind(schedule.kind)
    routes = routes_of(kind, len(pipeline.stages), schedule.virtual_stages)
    costs = _by_place(view, d, routes)
    stages = [stage for route in routes for stage, _ in route]
    chunks = schedule.virtual_stages
    overhead_s = problem.efficiency.microbatch_overhead_s * len(routes) / chunks
    hops = _hops(problem, view, d, routes)
    return PipelineSeconds(
        kind=kind,
        chunks=chunks,
        microbatches=pipeline.microbatches,
        routes=routes,
        passes=Seconds(
            forward_s=costs["forward_s"] + extra.forward_s[stages] / chunks + overhead_s,
            backward_s=costs["backward_s"] + extra.backward_s[stages] / chunks,
            weight_s=costs["weight_gradient_s"],
            up_s=hops,
            down_s=hops,
            forward_ep_s=costs["forward_ep_s"],
            backward_ep_s=costs["backward_ep_s"],
        ),
    )


_COSTS = ("forward_s", "backward_s", "weight_gradient_s", "forward_ep_s", "backward_ep_s")


def _by_place(view: Frame, d: int, routes: tuple[Route, ...]) -> dict[str, FloatArray]:
    """Costs of one micro-batch at every place."""
    if view.layout.schedule.virtual_stages == 1:
        return {name: view.columns[name][view.span(d)] for name in _COSTS}
    rows = [view.chunks[d, stage][nth] for route in routes for stage, nth in route]
    return {name: np.array([getattr(row, name) for row in rows]) for name in _COSTS}


def _hops(problem: Problem, view: Frame, d: int, routes: tuple[Route, ...]) -> FloatArray:
    """Seconds from every place to the next one of its way; 0 within a stage and at the end."""
    stages = view.layout.pipelines[d].stages
    rows = [view.rows[d, i] for i in range(len(stages))]
    seconds: dict[tuple[int, int], float] = {}
    hops: list[float] = []
    for route in routes:
        for (here, _), (there, _) in zip(route, (*route[1:], route[-1]), strict=True):
            ends = rows[here], rows[there]
            if here != there and ends not in seconds:
                seconds[ends] = _hop_seconds(problem, view.table, *ends)
            hops.append(seconds[ends] if here != there else 0.0)
    return np.array(hops)


def _hop_seconds(problem: Problem, table: StageTable, here: int, there: int) -> float:
    """Seconds of a hand-over between stages with these rows of the table."""
    sender, receiver = table.options[here], table.options[there]
    received = float(table.boundary_bytes[there])
    sent = received * receiver.num_chips / sender.num_chips
    return transfer_seconds(problem.cluster, sender, receiver, received, sent, problem.efficiency)


def visits_of(schedule: Schedule, num_stages: int, microbatches: int) -> int:
    """Micro-batches that visit a chunk of a pipeline."""
    kind = schedule_kind(schedule.kind)
    return microbatches // len(routes_of(kind, num_stages, schedule.virtual_stages))
