"""Every pass of one pipeline: when it runs, what of it is communication, what memory it takes."""

from dataclasses import dataclass

from costmodel.frame import Frame
from costmodel.pipeline_seconds import Extra, PipelineSeconds, pipeline_seconds
from costmodel.pipeline_time import pass_times
from costmodel.problem import Problem
from costmodel.schedules.replay import Lists, Times
from costmodel.stage.chunks import ChunkCosts, chunk_costs


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class PipelineRun:
    """One pipeline, pass by pass.

    chunks: costs of the chunks of each stage. extra: what ZeRO 2 and 3 add on each stage, in equal
    parts to its chunks. overhead_s: fixed part of every forward of a chunk.
    """

    seconds: PipelineSeconds
    lists: Lists
    times: Times
    chunks: tuple[tuple[ChunkCosts, ...], ...]
    extra: Extra
    overhead_s: float


def pipeline_run(problem: Problem, view: Frame, d: int, extra: Extra) -> PipelineRun:
    """The passes of pipeline d."""
    stages = view.layout.pipelines[d].stages
    seconds = pipeline_seconds(problem, view, d, extra)
    lists, times = pass_times(seconds)
    overhead_s = problem.efficiency.microbatch_overhead_s * len(seconds.routes) / seconds.chunks
    return PipelineRun(
        seconds=seconds,
        lists=lists,
        times=times,
        chunks=tuple(chunk_costs(view.table, view.rows[d, i], s) for i, s in enumerate(stages)),
        extra=extra,
        overhead_s=overhead_s,
    )
