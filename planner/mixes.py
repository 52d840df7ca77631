"""Layouts of several different pipelines at once: an integer master over pipeline templates.

For a time budget T a copy of template t runs m_t(T) micro-batches, so the most sequences that fit
into T under the pools' chips is ``max sum_t x_t m_t(T) s_t`` with ``sum_t x_t chips_t <= chips``
and integer x. T is bracketed with the linear relaxation; CP-SAT then picks the copies with the
exact m_t, at the first T on a ladder above the bracket at which the batch fits.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from costmodel.schedules.registry import schedule
from planner.arrays import FloatArray, IntArray
from planner.instance import (
    Draft,
    Entry,
    Instance,
    Template,
    largest_microbatches,
    makespan,
    template_chips,
    template_samples,
    times,
)
from planner.programs import Packing

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

LADDER = (1.0, 1.003, 1.01, 1.02, 1.04, 1.08, 1.15, 1.3)
MAX_COLUMNS = 120
DETERMINISTIC_LIMIT = 2.0
BISECTIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A template as the master sees it; its makespan is about ``ramp_s + m period_s``."""

    template: Template
    chips: IntArray
    samples: int
    ramp_s: float
    period_s: float


@lru_cache(maxsize=100_000)
def column(instance: Instance, template: Template) -> Column:
    """Fits the line through the simulated makespans at 4 p and 8 p micro-batches."""
    kind = schedule(instance.space.schedules[0])
    parts = times(instance, template)
    p = len(template.rows)
    early, late = (kind.simulate(*parts, n * p)[0] for n in (4, 8))
    period = (late - early) / (4 * p)
    return Column(
        template=template,
        chips=template_chips(instance, template),
        samples=template_samples(instance, template),
        ramp_s=early - 4 * p * period,
        period_s=period,
    )


def _gains(columns: tuple[Column, ...], budget_s: float) -> FloatArray:
    """Sequences that a copy of each column runs within the budget."""
    ramps, periods, samples = np.array([(c.ramp_s, c.period_s, c.samples) for c in columns]).T
    return np.maximum(0.0, np.floor((budget_s - ramps) / periods)) * samples


def _bracket(instance: Instance, columns: tuple[Column, ...]) -> tuple[float, FloatArray]:
    """Smallest budget at which the relaxation holds the batch, with its copies of each column."""
    chips = np.array(instance.chips, dtype=np.float64)
    packing = Packing.of(np.array([c.chips for c in columns]), chips)
    fastest = min(c.ramp_s + instance.batch / c.samples * c.period_s for c in columns)
    low, high = 0.0, fastest
    best = packing.best(_gains(columns, high))[1]
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        gains = _gains(columns, middle)
        value, copies = packing.best(gains) if gains.any() else (0.0, best)
        if value >= instance.batch:
            high, best = middle, copies
        else:
            low = middle
    return high, best


def _promising(
    columns: tuple[Column, ...], budget_s: float, copies: FloatArray, chips: FloatArray
) -> tuple[Column, ...]:
    """Columns of the relaxed solution, then those with most sequences per share of chips."""

    def merit(k: int) -> tuple[bool, float]:
        c = columns[k]
        gain = max(0.0, (budget_s - c.ramp_s) / c.period_s) * c.samples
        return copies[k] > 1e-9, gain / float((c.chips / np.maximum(chips, 1.0)).sum())

    order = sorted(range(len(columns)), key=merit, reverse=True)
    return tuple(columns[k] for k in order[:MAX_COLUMNS])


def _copies(
    instance: Instance, columns: tuple[Column, ...], microbatches: list[int]
) -> list[int] | None:
    """Integer copies that hold the batch and use few pipeline shapes; None when there are none."""
    from ortools.sat.python import cp_model  # a quarter of a second, and few searches come here

    model = cp_model.CpModel()
    most = [
        min(int(n) // int(c) for n, c in zip(instance.chips, col.chips, strict=True) if c > 0)
        if m > 0
        else 0
        for col, m in zip(columns, microbatches, strict=True)
    ]
    copies = [model.new_int_var(0, top, f"copies_{k}") for k, top in enumerate(most)]
    used = [model.new_bool_var(f"used_{k}") for k in range(len(columns))]
    for pool, limit in enumerate(instance.chips):
        needs = [int(col.chips[pool]) for col in columns]
        model.add(_weighted(copies, needs) <= int(limit))
    for count, flag, top in zip(copies, used, most, strict=True):
        model.add(count <= top * flag)
    model.add(sum(used) <= instance.space.template_limit)
    gains = [m * col.samples for col, m in zip(columns, microbatches, strict=True)]
    model.add(_weighted(copies, gains) >= instance.batch)
    model.maximize(_weighted(copies, gains))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = DETERMINISTIC_LIMIT
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return [int(solver.value(count)) for count in copies]


def _weighted(variables: "list[cp_model.IntVar]", weights: list[int]) -> "cp_model.LinearExpr":
    """``sum_k weights[k] variables[k]``."""
    from ortools.sat.python import cp_model

    return cp_model.LinearExpr.weighted_sum(variables, weights)  # pyright: ignore[reportUnknownMemberType]


def trim(instance: Instance, draft: Draft) -> Draft | None:
    """Takes surplus micro-batches from the slowest pipelines until the batch is met exactly.

    None when the surplus is not a sum of the pipelines' sequences per micro-batch.
    """
    counts = {(e.template, e.microbatches): 0 for e in draft}
    for e in draft:
        counts[e.template, e.microbatches] += e.count
    samples = {e.template: template_samples(instance, e.template) for e in draft}
    surplus = sum(n * m * samples[t] for (t, m), n in counts.items()) - instance.batch
    while surplus > 0:
        able = [(t, m) for (t, m) in counts if samples[t] <= surplus]
        if not able:
            return None
        t, m = max(able, key=lambda k: (makespan(instance, k[0], k[1]), k[0].rows, k[0].cuts))
        moved = min(counts[t, m], surplus // samples[t])
        surplus -= moved * samples[t]
        counts[t, m] -= moved
        if counts[t, m] == 0:
            del counts[t, m]
        if m > 1:
            counts[t, m - 1] = counts.get((t, m - 1), 0) + moved
    entries = (Entry(template=t, count=n, microbatches=m) for (t, m), n in counts.items())
    return tuple(entries) if surplus == 0 and counts else None


def mix(instance: Instance, columns: tuple[Column, ...]) -> Draft | None:
    """The best layout over these columns by simulated pipeline time; None when none holds."""
    if not columns:
        return None
    budget, relaxed = _bracket(instance, columns)
    chosen = _promising(columns, budget, relaxed, np.array(instance.chips, dtype=np.float64))
    for factor in LADDER:
        limits = [instance.batch // c.samples for c in chosen]
        microbatches = [
            largest_microbatches(instance, c.template, budget * factor, limit)
            for c, limit in zip(chosen, limits, strict=True)
        ]
        copies = _copies(instance, chosen, microbatches)
        if copies is not None:
            rows = zip(chosen, copies, microbatches, strict=True)
            return trim(
                instance,
                tuple(Entry(template=c.template, count=n, microbatches=m) for c, n, m in rows if n),
            )
    return None
