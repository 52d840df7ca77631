"""Mixes whose pipelines hold less on a chip, so that summing gradients takes less time.

The master sees pipeline times only. Where synchronisation shows in the step, every pool in turn is
held to pipelines whose heaviest stage has fewer parameters than now; what the exact score likes
better stays.
"""

from collections.abc import Iterator
from itertools import pairwise

from planner.instance import Draft, Instance, Score, Template, layout_of
from planner.mixes import Column, mix

WORTH = 0.02
"""Share of the step that synchronisation takes at least, for this to be tried."""


def lightened(instance: Instance, draft: Draft, columns: tuple[Column, ...]) -> Iterator[Draft]:
    """Ever faster mixes over these columns of one pool each."""
    score = instance.evaluate(layout_of(instance, draft))
    for pool in range(len(instance.chips)):
        while _worth(score):
            kept = _lighter(instance, draft, columns, pool)
            tried = mix(instance, kept) if len(kept) < len(columns) else None
            trial = instance.evaluate(layout_of(instance, tried)) if tried else score
            if tried is None or trial.step_time_s >= score.step_time_s:
                break
            draft, score, columns = tried, trial, kept
            yield draft


def _lighter(
    instance: Instance, draft: Draft, columns: tuple[Column, ...], pool: int
) -> tuple[Column, ...]:
    """The columns without those of the pool that weigh as much as the draft's heaviest there."""
    used = [e.template for e in draft if _pool(instance, e.template) == pool]
    heaviest = max((_weight(instance, t) for t in used), default=float("inf"))
    return tuple(
        c
        for c in columns
        if _pool(instance, c.template) != pool or _weight(instance, c.template) < heaviest
    )


def _worth(score: Score) -> bool:
    return score.step_time_s - score.pipeline_s > WORTH * score.step_time_s


def _pool(instance: Instance, template: Template) -> int:
    return int(instance.table.pool_index[template.rows[0]])


def _weight(instance: Instance, template: Template) -> float:
    """Most parameters of layers on one chip of a stage."""
    layers = instance.table.layers
    held = layers.dense_parameters + layers.expert_parameters
    return max(
        float(held[row, stop] - held[row, start])
        for row, (start, stop) in zip(template.rows, pairwise(template.cuts), strict=True)
    )
