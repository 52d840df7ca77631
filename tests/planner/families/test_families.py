"""Searches of one pipeline shape against enumeration: plans, and bounds that cannot be raised."""

from collections.abc import Callable
from functools import cache
from itertools import count, islice

import pytest

from costmodel.problem import Problem
from planner.families.branch import FamilyResult
from planner.families.flagscale import search_meshes
from planner.families.megatron import search_equal_degree
from planner.instance import Instance
from planner.kernels import make_ready
from planner.pricing import priced
from planner.space import Space
from planner.watch import Watch
from tests.planner.families.chains import Belongs, best_seconds, chain_of_meshes, equal_degrees
from tests.planner.tiny import tiny_problem
from tests.planner.wide import KINDS, is_enumerable, wide_problem

Search = Callable[[Problem, Instance, Watch], FamilyResult]

Case = tuple[str, int]
"""A generator of problems and its seed."""

FEW = 30
TINY: list[Case] = [("tiny", seed) for seed in range(FEW)]
WIDE: list[Case] = [("wide", number) for number in range(FEW)]
FAMILIES: dict[str, tuple[Search, Belongs]] = {
    "megatron": (search_equal_degree, equal_degrees),
    "flagscale": (search_meshes, chain_of_meshes),
}


@cache
def wide_seeds() -> tuple[int, ...]:
    """Seeds of wide problems with a choice, but not too much of it."""
    return tuple(islice((seed for seed in count() if is_enumerable(wide_problem(seed))), FEW))


def problem_of(case: Case) -> tuple[Problem, Space]:
    kind, number = case
    if kind == "tiny":
        return tiny_problem(number)
    wide = wide_problem(wide_seeds()[number])
    return wide.problem, wide.space


@cache
def solved(family: str, case: Case) -> tuple[FamilyResult, float]:
    make_ready()
    search, belongs = FAMILIES[family]
    problem, space = problem_of(case)
    instance = priced(problem, space)
    found = search(problem, instance, Watch(limit_s=600.0))
    return found, best_seconds(problem, space, instance, belongs)


def step_seconds(found: FamilyResult) -> float:
    return found.score.step_time_s if found.score else float("inf")


@pytest.mark.parametrize("case", [*TINY, *WIDE], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_layout_of_the_family_beats_the_bound(family: str, case: Case) -> None:
    found, best = solved(family, case)

    assert found.bound_s <= best * (1 + 1e-9)


@pytest.mark.parametrize("case", [*TINY, *WIDE], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_plan_is_of_the_family_and_near_its_best(family: str, case: Case) -> None:
    found, best = solved(family, case)

    assert best * (1 - 1e-9) <= step_seconds(found) <= 1.03 * best


@pytest.mark.parametrize("cases", [TINY, WIDE], ids=["tiny", "wide"])
@pytest.mark.parametrize("family", FAMILIES)
def test_nearly_all_plans_are_the_best(family: str, cases: list[Case]) -> None:
    results = [solved(family, case) for case in cases]
    missed = [1 for found, best in results if step_seconds(found) > best * (1 + 1e-3)]

    assert len(missed) <= 0.1 * len(results)


@pytest.mark.parametrize("cases", [TINY, WIDE], ids=["tiny", "wide"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_bound_two_per_cent_higher_would_be_wrong(family: str, cases: list[Case]) -> None:
    results = [solved(family, case) for case in cases]
    feasible = [(found, best) for found, best in results if best < float("inf")]
    wrong = [found for found, best in feasible if 1.02 * found.bound_s > best]

    assert len(wrong) > 0.5 * len(feasible)


def test_wide_problems_are_of_every_kind() -> None:
    wide = [wide_problem(seed) for seed in wide_seeds()]
    clusters = [each.problem.cluster for each in wide]

    assert {each.kind for each in wide} == set(KINDS)
    assert {p.nodes for cluster in clusters for p in cluster.pools} >= {1, 2, 3}
    assert any(option.ep > 1 for each in wide for option in each.space.options)
