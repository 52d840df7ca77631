"""On small problems the search equals an exhaustive enumeration that shares no code with it."""

from functools import cache
from itertools import islice

import pytest

from costmodel.layout.values import Layout
from costmodel.problem import Problem
from costmodel.step import Evaluator
from planner.bound import work_bound
from planner.exact import prove
from planner.pricing import priced
from planner.ramp import ramp_bound
from planner.search import search
from planner.space import Space
from planner.watch import Watch
from tests.planner.enumeration import layouts, shapes
from tests.planner.tiny import tiny_problem

INSTANCES = 110
MOST_LAYOUTS = 300
MOST_SHAPES = 300


@cache
def instances() -> tuple[int, ...]:
    """Seeds of the first problems with few enough layouts, and with some choice."""
    found: list[int] = []
    seed = 0
    while len(found) < INSTANCES:
        problem, space = tiny_problem(seed)
        if is_small(problem, space) and len(all_layouts(seed)) > 1:
            found.append(seed)
        seed += 1
    return tuple(found)


def is_small(problem: Problem, space: Space) -> bool:
    batch = problem.job.global_batch_size
    size = batch * sum(1 for _ in islice(shapes(problem, space), MOST_SHAPES))
    if size * problem.cluster.num_chips > 4 * MOST_SHAPES:
        return False
    few = islice(layouts(problem, space), MOST_LAYOUTS + 1)
    return sum(1 for _ in few) <= MOST_LAYOUTS


@cache
def all_layouts(seed: int) -> tuple[Layout, ...]:
    return tuple(layouts(*tiny_problem(seed)))


def exhaustive(seed: int) -> float:
    problem, space = tiny_problem(seed)
    evaluator = Evaluator.of(problem, space.options)
    evaluations = (evaluator.evaluate(layout) for layout in all_layouts(seed))
    return min((e.step_time_s for e in evaluations if e.fits), default=float("inf"))


@pytest.mark.parametrize("part", range(11))
def test_search_finds_the_optimum_and_proves_it(part: int) -> None:
    for seed in instances()[10 * part : 10 * part + 10]:
        instance = priced(*tiny_problem(seed))
        found = search(instance, Watch(limit_s=60.0))
        best = found.best.score.step_time_s if found.best else float("inf")
        truth = exhaustive(seed)

        assert found.optimal
        assert best == pytest.approx(truth, rel=1e-9)
        if truth < float("inf"):
            assert work_bound(instance) + instance.floor <= truth
            assert ramp_bound(instance) + instance.floor <= truth


def test_enumeration_needs_no_incumbent() -> None:
    for seed in instances()[:10]:
        proof = prove(priced(*tiny_problem(seed)), None, float("inf"))

        assert proof.complete
        assert proof.step_time_s == pytest.approx(exhaustive(seed), rel=1e-9)


def test_the_random_problems_are_diverse() -> None:
    """Some do not fit, some need two islands, some several pipelines or stages."""
    problems = [tiny_problem(seed)[0] for seed in instances()]

    assert len(instances()) == INSTANCES
    assert {len(p.cluster.pools) for p in problems} == {1, 2}
    assert {len(p.cluster.islands) for p in problems} == {1, 2}
    assert {p.model.num_layers for p in problems} >= {2, 3, 4, 5}
    assert any(exhaustive(seed) == float("inf") for seed in instances())
