"""A pipeline's schedule as text: one row a stage, a fixed width."""

from dataclasses import replace

from costmodel.layout.values import Layout
from costmodel.pipeline_run import PipelineRun
from costmodel.problem import Problem
from costmodel.schedules.kind import Phase
from costmodel.schedules.replay import ABSENT, BESIDE, MICROBATCH, PHASE
from costmodel.step import evaluator_for

WIDTH = 96
MAX_MICROBATCHES = 16
"""More would blur into one colour; the ramps look the same from here on."""

LETTERS = {Phase.FORWARD: "F", Phase.BACKWARD: "B", Phase.INPUT: "B", Phase.WEIGHT: "W"}


def timeline(problem: Problem, layout: Layout, pipeline: int, width: int = WIDTH) -> str:
    """Forwards ``F``, backwards ``B`` and idle time ``.`` of each stage over the pipeline's run.

    Weight gradients that are passes of their own are ``W``; of two passes side by side each takes
    half of the room. Neighbouring passes alternate between
    capitals and small letters. With more than ``MAX_MICROBATCHES`` micro-batches the drawing shows
    that many, or twice the stages and chunks where a schedule needs as many.
    """
    own = layout.pipelines[pipeline]
    shown = min(own.microbatches, _enough(layout, len(own.stages)))
    run = evaluator_for(problem, layout).run(_with_microbatches(layout, pipeline, shown), pipeline)
    end_s = float(run.times.end_s.max())
    rows = [
        f"{i:>3} {stage.option.pool[:10]:<10} |{_row(run, i, end_s, width)}|"
        for i, stage in enumerate(own.stages)
    ]
    total = own.microbatches
    counted = f"{shown} of {total}" if total > shown else f"{total}"
    return "\n".join([f"pipeline {pipeline}, {counted} micro-batches, {end_s:.3g} s", *rows])


def _enough(layout: Layout, num_stages: int) -> int:
    """Micro-batches to draw: whole groups of the stages when they hold several chunks."""
    if layout.schedule.virtual_stages == 1:
        return MAX_MICROBATCHES
    return 2 * num_stages * max(1, -(-MAX_MICROBATCHES // (2 * num_stages)))


def _with_microbatches(layout: Layout, pipeline: int, microbatches: int) -> Layout:
    pipelines = list(layout.pipelines)
    pipelines[pipeline] = replace(pipelines[pipeline], microbatches=microbatches)
    return replace(layout, pipelines=tuple(pipelines))


def _row(run: PipelineRun, stage: int, end_s: float, width: int) -> str:
    cells = ["."] * width
    rows: list[list[int]] = run.lists.passes[stage].tolist()
    spans = zip(run.times.start_s[stage].tolist(), run.times.end_s[stage].tolist(), strict=True)
    for one, (start, end) in zip(rows, spans, strict=True):
        if one[PHASE] == ABSENT:
            break
        start = 0.5 * (start + end) if one[BESIDE] == 1 else start
        letter = LETTERS[Phase(one[PHASE])]
        letter = letter if one[MICROBATCH] % 2 == 0 else letter.lower()
        first = round(start / end_s * width)
        last = max(first + 1, round(end / end_s * width))
        for k in range(first, min(last, width)):
            cells[k] = letter
    return "".join(cells)
