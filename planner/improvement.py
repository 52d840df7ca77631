"""Local search on a layout: move a layer, change a stage's modes, hand over a micro-batch.

Every move is judged by the exact evaluator, so it can only help. The pipeline that ends last is
the one worth changing; its moves are pre-sorted by its own simulated makespan.
"""

from collections.abc import Iterator
from dataclasses import replace
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
    template_samples,
)
from planner.watch import Watch

MIN_TRIED, MAX_TRIED = 6, 24
"""Fewest and most reshaped pipelines scored in one round."""

MAX_SHIFTED = 24
"""Stages up to which layers also move between stages that are no neighbours."""

MAX_EVALUATIONS = 150
MAX_WORK = 5_000
"""Evaluations times what one costs: every cut makes a segment that all pipelines take part in."""


def moved_layers(template: Template) -> Iterator[Template]:
    """Templates with one layer moved across one cut."""
    cuts = template.cuts
    for i in range(1, len(cuts) - 1):
        for step in (-1, 1):
            if cuts[i - 1] < cuts[i] + step < cuts[i + 1]:
                yield replace(template, cuts=(*cuts[:i], cuts[i] + step, *cuts[i + 1 :]))


def shifted_layers(template: Template) -> Iterator[Template]:
    """Templates with one layer taken from one stage and given to another, all between sliding."""
    cuts, p = template.cuts, len(template.rows)
    for giver in range(p if p <= MAX_SHIFTED else 0):
        if cuts[giver + 1] - cuts[giver] < 2:
            continue
        for taker in range(p):
            if abs(giver - taker) < 2:
                continue
            low, high = min(giver, taker), max(giver, taker)
            step = -1 if giver < taker else 1
            moved = [c + step if low < i <= high else c for i, c in enumerate(cuts)]
            yield replace(template, cuts=tuple(moved))


def changed_modes(instance: Instance, template: Template, *, same_zero: bool) -> Iterator[Template]:
    """Templates with another recompute mode on one stage, and another ZeRO stage unless fixed."""
    options = instance.table.options
    siblings = _siblings(instance)
    for i, row in enumerate(template.rows):
        for other in siblings[row].rows:
            if other != row and not (same_zero and options[other].zero != options[row].zero):
                yield replace(template, rows=(*template.rows[:i], other, *template.rows[i + 1 :]))


def _siblings(instance: Instance) -> dict[int, Degrees]:
    return {row: d for d in degrees(instance) for row in d.rows}


def with_template(draft: Draft, old: Template, new: Template) -> Draft:
    """The draft with every copy of ``old`` replaced."""
    return tuple(replace(e, template=new) if e.template == old else e for e in draft)


def _slowest(instance: Instance, draft: Draft) -> Entry:
    return max(draft, key=lambda e: makespan(instance, e.template, e.microbatches))


def _reshaped(instance: Instance, draft: Draft, tried: int) -> list[Draft]:
    """The slowest pipeline reshaped, quickest first; the few best that seem to fit."""
    slowest = _slowest(instance, draft)
    old = slowest.template
    options = {
        *moved_layers(old),
        *shifted_layers(old),
        *changed_modes(instance, old, same_zero=len({e.template for e in draft}) > 1),
    }
    m = slowest.microbatches
    limit = makespan(instance, old, m) * 1.002
    timed = [(makespan(instance, t, m), t.rows, t.cuts) for t in options]
    ranked = sorted(entry for entry in timed if entry[0] <= limit)
    reshaped = (
        with_template(draft, old, Template(rows=rows, cuts=cuts)) for _, rows, cuts in ranked
    )
    return list(islice((d for d in reshaped if fits_roughly(instance, d)), tried))


def _rebalanced(instance: Instance, draft: Draft) -> list[Draft]:
    """Drafts with one micro-batch of every slowest copy given to copies of another entry."""
    slowest = _slowest(instance, draft)
    if slowest.microbatches < 2:
        return []
    size = template_samples(instance, slowest.template)
    found: list[Draft] = []
    for other in draft:
        taken = slowest.count * size
        unit = template_samples(instance, other.template)
        if other is slowest or taken % unit or taken // unit > other.count:
            continue
        found.append(_handed_over(draft, slowest, other, taken // unit))
    return found


def _handed_over(draft: Draft, giver: Entry, taker: Entry, copies: int) -> Draft:
    rest = tuple(e for e in draft if e not in (giver, taker))
    changed = (
        replace(giver, microbatches=giver.microbatches - 1),
        replace(taker, count=copies, microbatches=taker.microbatches + 1),
        replace(taker, count=taker.count - copies),
    )
    return merged((*rest, *(e for e in changed if e.count > 0)))


def merged(draft: Draft) -> Draft:
    """The draft with equal entries joined."""
    counts: dict[tuple[Template, int], int] = {}
    for e in draft:
        key = (e.template, e.microbatches)
        counts[key] = counts.get(key, 0) + e.count
    return tuple(Entry(template=t, count=n, microbatches=m) for (t, m), n in counts.items())


def _affordable(draft: Draft) -> int:
    """Evaluations that a draft of this size gets."""
    cuts = {cut for e in draft for cut in e.template.cuts}
    return max(6, min(MAX_EVALUATIONS, MAX_WORK // (len(cuts) * len(draft) ** 2)))


def improve(
    instance: Instance, draft: Draft, score: Score, watch: Watch
) -> tuple[Draft, Score, int]:
    """Hill climbing until no tried move helps; the draft, its score and the evaluations spent."""
    evaluated = 0
    budget = _affordable(draft)
    tried = max(MIN_TRIED, min(MAX_TRIED, budget // 6))
    while evaluated < budget:
        moves = _rebalanced(instance, draft)[:2] + _reshaped(instance, draft, tried)
        for candidate in moves:
            trial = instance.evaluate(layout_of(instance, candidate))
            evaluated += 1
            watch.saw(trial.step_time_s)
            if trial.step_time_s < score.step_time_s * (1 - 1e-9):
                draft, score = candidate, trial
                break
        else:
            break
        if watch.expired():
            break
    return draft, score, evaluated
