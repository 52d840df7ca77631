"""What the certificate proves is true: against enumerations that share no code with it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from costmodel.layout.values import Schedule
from costmodel.problem import Problem
from costmodel.schedules.registry import schedule
from costmodel.step import Evaluator
from planner.arrays import stage_bytes
from planner.certificate import METHOD, certified
from planner.certificate.cells import Test as Claim
from planner.certificate.columns import Columns
from planner.certificate.offers import Box, relaxation
from planner.certificate.proof import prove
from planner.certificate.sweep import sweep
from planner.exact import all_templates
from planner.instance import Instance, Template, arrays, template_chips, template_samples, times
from planner.pricing import priced
from planner.ramp import ramp_bound
from planner.space import Space
from planner.values import Bound
from planner.watch import Watch
from tests.planner.test_exact import all_layouts, exhaustive, instances
from tests.planner.tiny import tiny_problem

PROVED, GPIPED = 24, 8
SECONDS = 1.0
SWEPT = range(30)


def never() -> bool:
    return False


@cache
def proved_over_truth(seed: int) -> float:
    """The certificate with an incumbent half as slow again, over the optimum; 0 if none fits."""
    problem, space = tiny_problem(seed)
    truth, instance = exhaustive(seed), priced(problem, space)
    if truth == float("inf"):
        return 0.0
    clock = Watch(limit_s=SECONDS)
    known = ramp_bound(instance) + instance.floor
    return prove(problem, instance, 1.5 * truth, known, clock.expired) / truth


@pytest.mark.parametrize("seed", instances()[:PROVED])
def test_no_layout_is_faster_than_the_certificate_says(seed: int) -> None:
    assert proved_over_truth(seed) <= 1.0


def test_a_bound_inflated_by_two_per_cent_would_be_caught() -> None:
    found = [proved_over_truth(seed) for seed in instances()[:PROVED]]

    assert max(found) * 1.02 > 1.0
    assert np.median([f for f in found if f > 0]) > 0.8


def best_of(instance: Instance, template: Template, budget_s: float) -> int:
    """Sequences of one copy by plain simulation; in flight min(m, p - i), state spread widest."""
    x, layers = arrays(instance, sum(instance.chips) * 64), instance.num_layers
    kind, p, best = schedule("1f1b"), len(template.rows), 0
    for m in range(1, instance.batch // template_samples(instance, template) + 1):
        fits = all(
            stage_bytes(x, row, template.cuts[i], template.cuts[i + 1], layers, min(m, p - i))
            <= x.budget[row]
            for i, row in enumerate(template.rows)
        )
        if fits and kind.simulate(*times(instance, template), m)[0] <= budget_s:
            best = m
    return best * template_samples(instance, template)


def gpipe_truth(problem: Problem, space: Space, seed: int) -> float:
    """The optimum when all forwards come before all backwards."""
    evaluator = Evaluator.of(problem, space.options)
    found = (
        evaluator.evaluate(replace(layout, schedule=Schedule(kind="gpipe")))
        for layout in all_layouts(seed)
    )
    return min((e.step_time_s for e in found if e.fits), default=float("inf"))


@pytest.mark.parametrize("seed", instances()[:GPIPED])
def test_no_layout_under_gpipe_is_faster_either(seed: int) -> None:
    problem, space = tiny_problem(seed)
    space = replace(space, schedules=("gpipe",))
    truth, instance = gpipe_truth(problem, space, seed), priced(problem, space)
    if truth == float("inf"):
        return
    clock = Watch(limit_s=SECONDS)

    assert prove(problem, instance, 1.5 * truth, 1e-9, clock.expired) <= truth


@pytest.mark.parametrize("seed", SWEPT)
def test_prices_that_a_template_beats_are_never_accepted(seed: int) -> None:
    """The dearest prices at which some template still gains must not close."""
    problem, space = tiny_problem(seed)
    instance, random = priced(problem, space), np.random.default_rng(seed)
    templates = all_templates(instance, float("inf")) or ()
    budget_s = ramp_bound(instance) * random.uniform(1.0, 2.0)
    relaxed = relaxation(problem, instance, Box(least=1, most=instance.batch))
    prices = random.uniform(0.2, 1.0, len(relaxed.chips))
    of_pool = prices[list(relaxed.kinds)]
    rates = [
        best_of(instance, t, 0.97 * budget_s) / float(of_pool @ template_chips(instance, t))
        for t in templates
        if all(instance.table.options[row].zero < 2 for row in t.rows)
    ]
    highest = max(rates, default=0.0)
    if highest == 0.0:
        return
    columns = Columns(relaxed=relaxed, batch=instance.batch, piped=False)
    fair = Claim(budget_s=budget_s, prices=0.99 * highest * prices, toll=0.0)
    dear = Claim(budget_s=budget_s, prices=50.0 * highest * prices, toll=0.0)

    refused, accepted = sweep(columns, fair, never), sweep(columns, dear, never)

    assert refused is not None
    assert not refused.closed
    assert accepted is not None
    assert accepted.closed


def test_a_plans_bound_only_rises() -> None:
    seed = instances()[0]
    problem, space = tiny_problem(seed)
    instance = priced(problem, space)
    known = Bound(step_time_s=1e-9, gap=exhaustive(seed) / 1e-9 - 1.0, method="work")

    better = certified(problem, instance, known, SECONDS)
    same = certified(problem, instance, known, 0.0)

    assert better.method == METHOD
    assert better.step_time_s > known.step_time_s
    assert better.step_time_s * (1 + better.gap) == pytest.approx(exhaustive(seed))
    assert same == known
