"""A pipeline's schedule as text: one row a stage, a fixed width."""

import numpy as np

from costmodel.evaluation import Evaluation
from costmodel.schedules.registry import schedule
from planner.pass_times import Pass, pass_times

WIDTH = 96
MAX_MICROBATCHES = 16
"""More would blur into one colour; the ramps look the same from here on."""


def timeline(evaluation: Evaluation, pipeline: int, width: int = WIDTH) -> str:
    """Forwards ``F``, backwards ``B`` and idle time ``.`` of each stage over the pipeline's run.

    Neighbouring passes alternate between capitals and small letters. With more than
    ``MAX_MICROBATCHES`` micro-batches the drawing shows that many.
    """
    layout = evaluation.layout
    stages = evaluation.stages[pipeline]
    microbatches = min(layout.pipelines[pipeline].microbatches, MAX_MICROBATCHES)
    kind = schedule(layout.schedule.kind)
    forward = np.array([s.time.forward_s + s.time.sharded_forward_s for s in stages])
    backward = np.array(
        [s.time.backward_s + s.time.sharded_weights_s - s.time.sharded_forward_s for s in stages]
    )
    passes = pass_times(kind, forward, backward, microbatches)
    end = max(p.end_s for row in passes for p in row)
    rows = [
        f"{i:>3} {stages[i].stage.option.pool[:10]:<10} |{_row(row, end, width)}|"
        for i, row in enumerate(passes)
    ]
    total = layout.pipelines[pipeline].microbatches
    shown = (
        f"{microbatches} of {total} micro-batches"
        if total > microbatches
        else f"{total} micro-batches"
    )
    return "\n".join([f"pipeline {pipeline}, {shown}, {end:.3g} s, hand-overs not drawn", *rows])


def _row(passes: tuple[Pass, ...], end_s: float, width: int) -> str:
    cells = ["."] * width
    for one in passes:
        letter = "B" if one.is_backward else "F"
        letter = letter if one.microbatch % 2 == 0 else letter.lower()
        first = round(one.start_s / end_s * width)
        last = max(first + 1, round(one.end_s / end_s * width))
        for k in range(first, min(last, width)):
            cells[k] = letter
    return "".join(cells)
