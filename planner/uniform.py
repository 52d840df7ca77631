"""The best layout with equal degrees and even layers on all chips: what people start from."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import accumulate, islice, pairwise

from costmodel.schedules.registry import schedule
from planner.degrees import Degrees, degrees
from planner.instance import (
    Draft,
    Entry,
    Instance,
    Score,
    Template,
    fits_roughly,
    layout_of,
    makespan,
    times,
)

TRIED = 8
CHUNK = 64
"""Layouts that are simulated together; the closed form decides which come first."""


@lru_cache(maxsize=8)
def best_uniform(instance: Instance) -> tuple[Draft, Score] | None:
    """The best layout with equal degrees and even layers on all chips; None when none fits.

    Ranks are numbered through the pools in order, tensor-parallel first, then the copies of a
    stage, then the stages, as Megatron does; so the slowest pool sets the pace of its stage.
    """
    for draft in islice(_fitting(instance), TRIED):
        score = instance.evaluate(layout_of(instance, draft))
        if score.step_time_s < float("inf"):
            return draft, score
    return None


def _fitting(instance: Instance) -> Iterator[Draft]:
    """Layouts that seem to fit, the quickest pipelines first."""
    drafts = sorted(_uniform_drafts(instance), key=lambda draft: _estimate(instance, draft))
    fitting = (draft for draft in drafts if fits_roughly(instance, draft))
    while chunk := list(islice(fitting, CHUNK)):
        yield from sorted(chunk, key=lambda draft: _pipeline_s(instance, draft, makespan))


def _estimate(instance: Instance, draft: Draft) -> float:
    form = schedule(instance.space.schedules[0]).closed_form
    return _pipeline_s(instance, draft, lambda i, t, m: form(*times(i, t), m))


def _pipeline_s(
    instance: Instance, draft: Draft, seconds: Callable[[Instance, Template, int], float]
) -> float:
    return max(seconds(instance, e.template, e.microbatches) for e in draft)


def _uniform_drafts(instance: Instance) -> Iterator[Draft]:
    total, layers = sum(instance.chips), instance.num_layers
    for rows in _shared_options(instance):
        size = int(instance.table.num_chips[rows[0]])
        samples = int(instance.table.samples[rows[0]])
        if any(chips % size for chips in instance.chips):
            continue
        for stages in range(1, min(layers, instance.space.max_stages) + 1):
            copies, rest = divmod(total // size, stages)
            if rest or copies == 0 or instance.batch % (samples * copies):
                continue
            yield _uniform_draft(instance, rows, stages, copies)


def _shared_options(instance: Instance) -> list[tuple[int, ...]]:
    """Rows, one a pool, of the options that every pool offers, with ZeRO 1."""
    by_degrees: dict[tuple[object, ...], dict[int, int]] = {}
    for d in degrees(instance):
        for row in _plain_rows(instance, d):
            o = instance.table.options[row]
            key = (o.tp, o.cp, o.ep, o.etp, o.replicas, o.micro_batch_size, o.recompute)
            by_degrees.setdefault(key, {})[d.pool] = row
    pools = range(len(instance.chips))
    return [
        tuple(rows[k] for k in pools) for rows in by_degrees.values() if len(rows) == len(pools)
    ]


def _plain_rows(instance: Instance, d: Degrees) -> list[int]:
    least = min(instance.table.options[row].zero for row in d.rows)
    zero = max(least, 1)
    return [row for row in d.rows if instance.table.options[row].zero == zero]


def _uniform_draft(instance: Instance, rows: tuple[int, ...], stages: int, copies: int) -> Draft:
    """Group g of the chips in pool order is copy ``g % copies`` of stage ``g // copies``."""
    size, layers = int(instance.table.num_chips[rows[0]]), instance.num_layers
    ends = list(accumulate(chips // size for chips in instance.chips))
    cuts = tuple(layers * i // stages for i in range(stages + 1))
    changes = sorted({0, *(end % copies for end in ends)})
    templates: Counter[Template] = Counter()
    for first, stop in pairwise((*changes, copies)):
        pools = (bisect_right(ends, i * copies + first) for i in range(stages))
        templates[Template(rows=tuple(rows[k] for k in pools), cuts=cuts)] += stop - first
    microbatches = instance.batch // (int(instance.table.samples[rows[0]]) * copies)
    return tuple(
        Entry(template=t, count=n, microbatches=microbatches) for t, n in templates.items()
    )
