"""Small problems exactly: every pipeline template, then branch and bound over multisets of them.

With an incumbent of step time T, a copy of template t can run at most m_t(T) micro-batches, by the
simulation alone (synchronisation and overheads only add). ``most[c]`` is the largest number of
sequences that copies within c chips can run so (an unbounded knapsack over chip vectors). A
partial layout whose remaining chips cannot take the remaining sequences has no completion faster
than T. When the search ends, the incumbent is the optimum of the space.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np

from costmodel.schedules.registry import schedule
from planner.arrays import Arrays, stage_bytes, stage_seconds
from planner.instance import (
    Draft,
    Entry,
    Instance,
    Template,
    arrays,
    largest_microbatches,
    layout_of,
    makespan,
    template_chips,
    template_samples,
)
from planner.space import INTERLEAVED

MAX_TEMPLATES = 50_000
MAX_NODES = 100_000
MAX_PROSPECTS = 400_000
MAX_LOOKED = 400_000
"""Stages looked at while templates are listed: most stems of a deep problem have no completion, so
the number of templates alone bounds nothing."""
MAX_STATES = 5_000_000
"""Vectors of chips times kinds of templates, for the knapsack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Outcome of the exact search: the best layout found and whether nothing is faster."""

    draft: Draft | None
    step_time_s: float
    complete: bool
    evaluated: int


class _TooManyError(Exception):
    """The problem is too large to enumerate."""


def all_templates(
    instance: Instance, budget_s: float, expired: Callable[[], bool] = lambda: False
) -> tuple[Template, ...] | None:
    """Every template that could belong to a layout of at most ``budget_s``; None if too many.

    Left out: stages that alone take longer than the budget, or that do not fit even with one
    micro-batch in flight and all state sharded over as many pipelines as there are chips. None also
    when ``expired`` says so, which is asked at every stem.
    """
    found: list[Template] = []
    if _prospects(instance) > MAX_PROSPECTS:
        return None
    looking = _Looking(
        instance=instance,
        arrays=arrays(instance, sum(instance.chips)),
        budget_s=budget_s,
        expired=expired,
    )
    try:
        for template in _each_template(looking):
            found.append(template)
            if len(found) > MAX_TEMPLATES:
                return None
    except _TooManyError:
        return None
    return tuple(found)


@dataclass(slots=True, kw_only=True)
class _Looking:
    """What the listing of templates reads, and the stages it has looked at."""

    instance: Instance
    arrays: Arrays
    budget_s: float
    expired: Callable[[], bool]
    looked: int = 0

    def check(self) -> None:
        """Raises _TooManyError when the listing has to end."""
        if self.looked > MAX_LOOKED or self.expired():
            raise _TooManyError


def _each_template(looking: _Looking) -> Iterator[Template]:
    instance = looking.instance
    for samples in sorted(set(instance.table.samples.tolist())):
        rows = np.flatnonzero(instance.table.samples == samples).tolist()
        stem = _Stem(rows=(), cuts=(0,), chips=tuple(instance.chips))
        yield from _extend(looking, stem, rows)


def _prospects(instance: Instance) -> int:
    """Templates of one and two stages, whatever their chips: what is certainly looked at."""
    counts = np.unique(instance.table.samples, return_counts=True)[1]
    cuts = min(instance.num_layers, instance.space.max_stages) - 1
    return int(sum(n + n * n * cuts for n in counts.tolist()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stem:
    """The first stages of a template, and the chips left for the rest."""

    rows: tuple[int, ...]
    cuts: tuple[int, ...]
    chips: tuple[int, ...]


def _extend(looking: _Looking, stem: _Stem, options: list[int]) -> Iterator[Template]:
    """Depth-first: all completions of the stages chosen so far."""
    looking.check()
    instance, x = looking.instance, looking.arrays
    layers, table, start = instance.num_layers, instance.table, stem.cuts[-1]
    if start == layers:
        yield Template(rows=stem.rows, cuts=stem.cuts)
        return
    if len(stem.rows) == instance.space.max_stages:
        return
    for row in options:
        left = list(stem.chips)
        left[int(table.pool_index[row])] -= int(table.num_chips[row])
        if min(left) < 0:
            continue
        for stop in range(start + 1, layers + 1):
            looking.looked += 1
            if not _stage_possible(x, row, (start, stop), layers, looking.budget_s):
                break
            longer = _Stem(rows=(*stem.rows, row), cuts=(*stem.cuts, stop), chips=tuple(left))
            yield from _extend(looking, longer, options)


def _stage_possible(
    x: Arrays, row: int, held: tuple[int, int], layers: int, budget_s: float
) -> bool:
    """Whether a stage with one micro-batch in flight may fit its memory and the time."""
    if sum(stage_seconds(x, row, *held, layers)) > budget_s:
        return False
    return stage_bytes(x, row, *held, layers, 1) <= x.budget[row] * (1 + 1e-9)


@dataclass(slots=True, kw_only=True)
class _Search:
    """State of one branch and bound."""

    instance: Instance
    templates: list[Template]
    chips: list[tuple[int, ...]]
    samples: list[int]
    limits: list[int]
    most: dict[tuple[int, ...], int]
    best: Draft | None
    best_s: float
    expired: Callable[[], bool]
    nodes: int = 0
    evaluated: int = 0
    chosen: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def run(self, left: tuple[int, ...], sequences: int, able: list[int], top: int) -> None:
        """Adds pipelines in order of (template, micro-batches falling) until the batch is met.

        able: templates that may come next, the last one first with at most ``top`` micro-batches.
        """
        self.nodes += 1
        if self.nodes > MAX_NODES or self.expired():
            raise _TooManyError
        if sequences == 0:
            self._leaf()
            return
        able = [t for t in able if _within(self.chips[t], left)]
        last = self.chosen[-1][0] if self.chosen else -1
        for k, t in enumerate(able):
            if not self._shape_allowed(t):
                continue
            rest = tuple(n - c for n, c in zip(left, self.chips[t], strict=True))
            size, reachable = self.samples[t], self.most[rest]
            most = min(self.limits[t], sequences // size)
            for m in range(min(most, top) if t == last else most, 0, -1):
                if sequences - m * size > reachable:
                    break
                self.chosen.append((t, m))
                self.run(rest, sequences - m * size, able[k:], m)
                self.chosen.pop()

    def _shape_allowed(self, t: int) -> bool:
        shapes = {chosen for chosen, _ in self.chosen}
        return t in shapes or len(shapes) < self.instance.space.template_limit

    def _leaf(self) -> None:
        slowest = max(makespan(self.instance, self.templates[t], m) for t, m in self.chosen)
        if slowest + self.instance.floor >= self.best_s:
            return
        draft = tuple(
            Entry(template=self.templates[t], count=self.chosen.count((t, m)), microbatches=m)
            for t, m in dict.fromkeys(self.chosen)
        )
        score = self.instance.evaluate(layout_of(self.instance, draft))
        self.evaluated += 1
        if score.step_time_s < self.best_s:
            self.best, self.best_s = draft, score.step_time_s


def _within(need: tuple[int, ...], left: tuple[int, ...]) -> bool:
    return all(c <= n for c, n in zip(need, left, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Able:
    """A template that may be part of a layout within the budget; limit: its most micro-batches."""

    template: Template
    chips: tuple[int, ...]
    samples: int
    limit: int


def _able(
    instance: Instance, templates: Sequence[Template], budget_s: float, expired: Callable[[], bool]
) -> list[_Able]:
    """Templates beside which the other chips can run the rest of the batch in time."""
    found: list[_Able] = []
    for t in sorted(templates, key=lambda t: (t.rows, t.cuts)):
        if expired():
            raise _TooManyError
        size = template_samples(instance, t)
        limit = largest_microbatches(instance, t, budget_s, instance.batch // size)
        if limit > 0:
            chips = tuple(template_chips(instance, t).tolist())
            found.append(_Able(template=t, chips=chips, samples=size, limit=limit))
    before = -1
    while len(found) != before:
        before, most = len(found), _knapsack(instance, found, expired)
        found = [a for a in found if _enough(instance, a, most)]
    return found


def _enough(instance: Instance, able: _Able, most: Mapping[tuple[int, ...], int]) -> bool:
    rest = tuple(n - c for n, c in zip(instance.chips, able.chips, strict=True))
    return able.limit * able.samples + most[rest] >= instance.batch


def _knapsack(
    instance: Instance, able: Sequence[_Able], expired: Callable[[], bool]
) -> dict[tuple[int, ...], int]:
    """Most sequences within every vector of chips."""
    best_gain: dict[tuple[int, ...], int] = {}
    for a in able:
        best_gain[a.chips] = max(a.limit * a.samples, best_gain.get(a.chips, 0))
    if prod(n + 1 for n in instance.chips) * len(best_gain) > MAX_STATES:
        raise _TooManyError
    most: dict[tuple[int, ...], int] = {}
    for state in product(*(range(n + 1) for n in instance.chips)):
        if expired():
            raise _TooManyError
        value = 0
        for need, gain in best_gain.items():
            rest = tuple(n - c for n, c in zip(state, need, strict=True))
            if min(rest) >= 0:
                value = max(value, gain + most[rest])
        most[state] = value
    return most


def prove(
    instance: Instance,
    incumbent: Draft | None,
    incumbent_s: float,
    expired: Callable[[], bool] = lambda: False,
) -> Proof:
    """Searches the whole space for a layout faster than the incumbent.

    ``complete`` is true when the answer is the optimum of the space; when the problem is too
    large, when the time is over, or when its schedule runs weight gradients apart or interleaves
    chunks, which the quick simulation does not know, the incumbent comes back with ``complete``
    false. Of several schedules only layouts of the first are searched.
    """
    unproved = Proof(draft=incumbent, step_time_s=incumbent_s, complete=False, evaluated=0)
    first = instance.space.schedules[0]
    if schedule(first).program is not None or first == INTERLEAVED:
        return unproved
    templates = all_templates(instance, incumbent_s, expired)
    if templates is None:
        return unproved
    try:
        able = _able(instance, templates, incumbent_s - instance.floor, expired)
        most = _knapsack(instance, able, expired)
    except _TooManyError:
        return unproved
    state = _Search(
        instance=instance,
        templates=[a.template for a in able],
        chips=[a.chips for a in able],
        samples=[a.samples for a in able],
        limits=[a.limit for a in able],
        most=most,
        best=incumbent,
        best_s=incumbent_s,
        expired=expired,
    )
    try:
        state.run(tuple(instance.chips), instance.batch, list(range(len(able))), instance.batch)
    except _TooManyError:
        return Proof(
            draft=state.best, step_time_s=state.best_s, complete=False, evaluated=state.evaluated
        )
    return Proof(
        draft=state.best, step_time_s=state.best_s, complete=True, evaluated=state.evaluated
    )
