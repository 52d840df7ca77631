"""Searches of one pipeline shape against enumeration: plans, and bounds that cannot be raised."""

from collections.abc import Callable
from functools import cache

import pytest

from costmodel.problem import Problem
from planner.families.branch import FamilyResult
from planner.families.flagscale import search_meshes
from planner.families.megatron import search_equal_degree
from planner.instance import Instance
from planner.kernels import make_ready
from planner.pricing import priced
from planner.watch import Watch
from tests.planner.families.chains import Belongs, best_seconds, chain_of_meshes, equal_degrees
from tests.planner.tiny import tiny_problem

Search = Callable[[Problem, Instance, Watch], FamilyResult]

SEEDS = range(30)
FAMILIES: dict[str, tuple[Search, Belongs]] = {
    "megatron": (search_equal_degree, equal_degrees),
    "flagscale": (search_meshes, chain_of_meshes),
}


@cache
def solved(family: str, seed: int) -> tuple[FamilyResult, float]:
    make_ready()
    search, belongs = FAMILIES[family]
    problem, space = tiny_problem(seed)
    instance = priced(problem, space)
    found = search(problem, instance, Watch(limit_s=600.0))
    return found, best_seconds(problem, space, instance, belongs)


def step_seconds(found: FamilyResult) -> float:
    return found.score.step_time_s if found.score else float("inf")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_layout_of_the_family_beats_the_bound(family: str, seed: int) -> None:
    found, best = solved(family, seed)

    assert found.bound_s <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_plan_is_of_the_family_and_near_its_best(family: str, seed: int) -> None:
    found, best = solved(family, seed)

    assert best * (1 - 1e-9) <= step_seconds(found) <= 1.03 * best


@pytest.mark.parametrize("family", FAMILIES)
def test_nearly_all_plans_are_the_best(family: str) -> None:
    results = [solved(family, seed) for seed in SEEDS]
    missed = [1 for found, best in results if step_seconds(found) > best * (1 + 1e-3)]

    assert len(missed) <= 0.1 * len(results)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bound_two_per_cent_higher_would_be_wrong(family: str) -> None:
    results = [solved(family, seed) for seed in SEEDS]
    feasible = [(found, best) for found, best in results if best < float("inf")]
    wrong = [found for found, best in feasible if 1.02 * found.bound_s > best]

    assert len(wrong) > 0.5 * len(feasible)
