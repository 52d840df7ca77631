"""On 500 small problems of every kind the search equals an enumeration that shares no code."""

from functools import cache

import pytest

from costmodel.layout.values import Layout
from costmodel.step import Evaluator
from planner.bound import work_bound
from planner.pricing import priced
from planner.ramp import ramp_bound
from planner.search import search
from planner.watch import Watch
from tests.planner.enumeration import layouts
from tests.planner.wide import KINDS, Wide, is_enumerable, wide_problem

FEW, MANY, AT_ONCE = 50, 500, 10


@cache
def part_of(number: int) -> tuple[Wide, ...]:
    """The first problems of a part of the seeds that are small enough, with some choice."""
    found: list[Wide] = []
    seed = number * 10_000
    while len(found) < AT_ONCE:
        wide = wide_problem(seed)
        if is_enumerable(wide):
            found.append(wide)
        seed += 1
    return tuple(found)


def exhaustive(wide: Wide) -> float:
    """The least step time by event simulation of every layout."""
    evaluator = Evaluator.of(wide.problem, wide.space.options)
    every: list[Layout] = list(layouts(wide.problem, wide.space))
    evaluations = (evaluator.evaluate(layout) for layout in every)
    return min((e.step_time_s for e in evaluations if e.fits), default=float("inf"))


PARTS = [
    pytest.param(number, marks=[pytest.mark.slow] if number * AT_ONCE >= FEW else [])
    for number in range(MANY // AT_ONCE)
]


@pytest.mark.parametrize("number", PARTS)
def test_the_search_equals_the_enumeration_and_says_so(number: int) -> None:
    for wide in part_of(number):
        instance = priced(wide.problem, wide.space)
        found = search(instance, Watch(limit_s=60.0))
        truth = exhaustive(wide)
        best = found.best.score.step_time_s if found.best else float("inf")

        assert found.optimal
        assert best == pytest.approx(truth, rel=1e-9)
        if truth < float("inf"):
            assert work_bound(instance) + instance.floor <= truth * (1 + 1e-12)
            assert ramp_bound(instance) + instance.floor <= truth * (1 + 1e-12)


def test_the_first_fifty_are_of_every_kind() -> None:
    first = [wide for number in range(FEW // AT_ONCE) for wide in part_of(number)]
    clusters = [wide.problem.cluster for wide in first]

    assert {wide.kind for wide in first} == set(KINDS)
    assert {wide.tight for wide in first} == {False, True}
    assert {len(cluster.islands) for cluster in clusters} == {1, 2}
    assert {p.nodes for cluster in clusters for p in cluster.pools} >= {1, 2, 3}
    assert any(option.ep > 1 for wide in first for option in wide.space.options)
    assert any(exhaustive(wide) == float("inf") for wide in first)
    assert sum(exhaustive(wide) < float("inf") for wide in first) > FEW // 2
