"""The best layout with equal degrees and even layers on all chips: what people start from."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

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
)

TRIED = 8


def best_uniform(instance: Instance) -> tuple[Draft, Score] | None:
    """The best layout with equal degrees and even layers on all chips; None when none fits.

    Ranks are numbered through the pools in order, tensor-parallel first, then the copies of a
    stage, then the stages, as Megatron does; so the slowest pool sets the pace of its stage.
    """
    drafts = sorted(
        _uniform_drafts(instance),
        key=lambda draft: max(makespan(instance, e.template, e.microbatches) for e in draft),
    )
    fitting = (draft for draft in drafts if fits_roughly(instance, draft))
    for draft in islice(fitting, TRIED):
        score = instance.evaluate(layout_of(instance, draft))
        if score.step_time_s < float("inf"):
            return draft, score
    return None


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
    size, layers = int(instance.table.num_chips[rows[0]]), instance.num_layers
    pool_of_group = [k for k, chips in enumerate(instance.chips) for _ in range(chips // size)]
    cuts = tuple(layers * i // stages for i in range(stages + 1))
    templates = Counter(
        Template(rows=tuple(rows[pool_of_group[i * copies + c]] for i in range(stages)), cuts=cuts)
        for c in range(copies)
    )
    samples = int(instance.table.samples[rows[0]])
    microbatches = instance.batch // (samples * copies)
    return tuple(
        Entry(template=t, count=n, microbatches=microbatches) for t, n in templates.items()
    )
