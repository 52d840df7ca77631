"""Interleaved chains against plain loops: step times, plans, and bounds that cannot be raised."""

from functools import cache
from random import Random

import numpy as np
import pytest

import planner.interleaving.enumeration as enumeration
from costmodel.problem import Problem
from planner.families.branch import FamilyResult
from planner.families.cells import cells
from planner.families.links import links_of
from planner.instance import Instance, layout_of
from planner.interleaving.deal import Dealt, draft_of
from planner.interleaving.score import step_seconds
from planner.interleaving.search import Wanted, search_interleaved
from planner.interleaving.terms import field_of
from planner.kernels import make_ready
from planner.pricing import priced
from planner.space import Space
from planner.watch import Watch
from tests.planner.interleaving.chains import interleaved_layouts
from tests.planner.wide import KINDS, wide_problem

SEEDS = range(400)
FEW, MOST_LAYOUTS = 40, 2500


@cache
def chosen() -> tuple[tuple[int, str], ...]:
    """Seeds of problems that have interleaved layouts, but not too many, and their kinds."""
    found: list[tuple[int, str]] = []
    for seed in SEEDS:
        wide = wide_problem(seed, (4, 6))
        size = 0
        for _ in interleaved_layouts(wide.problem, wide.space):
            size += 1
            if size > MOST_LAYOUTS:
                break
        if 0 < size <= MOST_LAYOUTS:
            found.append((seed, wide.kind))
        if len(found) == FEW:
            break
    return tuple(found)


@cache
def setting(seed: int) -> tuple[Problem, Space, Instance]:
    make_ready()
    wide = wide_problem(seed, (4, 6))
    return wide.problem, wide.space, priced(wide.problem, wide.space)


@cache
def truth(seed: int) -> float:
    problem, space, instance = setting(seed)
    every = interleaved_layouts(problem, space)
    return min(instance.evaluate(layout).step_time_s for layout in every)


def solved(seed: int) -> FamilyResult:
    problem, _, instance = setting(seed)
    return search_interleaved(problem, instance, Watch(limit_s=600.0), goal=0.0)


@cache
def relaxed(seed: int) -> FamilyResult:
    """Without an enumeration of small groups: what large ones get."""
    kept = enumeration.MOST_LAYOUTS
    enumeration.MOST_LAYOUTS = 0
    try:
        return solved(seed)
    finally:
        enumeration.MOST_LAYOUTS = kept


def step_s(found: FamilyResult) -> float:
    return found.score.step_time_s if found.score else float("inf")


def test_problems_are_of_every_kind() -> None:
    problems = [setting(seed)[0] for seed, _ in chosen()]

    assert {kind for _, kind in chosen()} == set(KINDS)
    assert {p.nodes for problem in problems for p in problem.cluster.pools} >= {1, 2, 3}
    assert any(truth(seed) == float("inf") for seed, _ in chosen())


@pytest.mark.parametrize("number", range(FEW))
def test_no_interleaved_layout_beats_the_bound(number: int) -> None:
    seed, _ = chosen()[number]

    assert relaxed(seed).bound_s <= truth(seed) * (1 + 1e-9)


@pytest.mark.parametrize("number", range(FEW))
def test_small_problems_are_solved(number: int) -> None:
    seed, _ = chosen()[number]
    found = solved(seed)

    assert found.bound_s <= truth(seed) * (1 + 1e-9)
    assert truth(seed) * (1 - 1e-9) <= step_s(found) <= truth(seed) * (1 + 1e-3)


def test_nearly_all_are_best_without_an_enumeration() -> None:
    feasible = [seed for seed, _ in chosen() if truth(seed) < float("inf")]
    missed = [seed for seed in feasible if step_s(relaxed(seed)) > 1.01 * truth(seed)]

    assert len(missed) <= 0.2 * len(feasible)


def test_a_bound_somewhat_higher_would_be_wrong() -> None:
    feasible = [seed for seed, _ in chosen() if truth(seed) < float("inf")]
    ratios = sorted(relaxed(seed).bound_s / truth(seed) for seed in feasible)

    assert 1.02 * ratios[-1] > 1.0
    assert ratios[len(ratios) // 2] > 0.9


@pytest.mark.parametrize("number", range(0, FEW, 4))
def test_step_seconds_are_those_of_the_evaluator(number: int) -> None:
    problem, _, instance = setting(chosen()[number][0])
    random, layers = Random(number), problem.model.num_layers
    if instance.table.tied_parameters.any():
        return
    for cell in cells(instance, lambda o: (o.pool, o)):
        if cell.microbatches % 2 or cell.deepest < 2:
            continue
        field = field_of(links_of(problem, instance.space.pools), instance, cell)
        cuts = sorted(random.sample(range(1, layers), 3))
        sizes = np.diff(np.array([0, *cuts, layers])).reshape(2, 2)
        rows = np.zeros(2, np.int64)
        quick = step_seconds(field.costs, rows, sizes, cell.microbatches)
        draft = draft_of(field, Dealt(seconds=quick, rows=rows, sizes=sizes))
        exact = instance.evaluate(layout_of(instance, draft)).step_time_s

        assert quick == pytest.approx(exact, rel=1e-3)


def test_chunks_and_stages_are_those_wanted() -> None:
    for seed, _ in chosen():
        problem, _, instance = setting(seed)
        wanted = Wanted(chunks=frozenset({2}), depths=frozenset({2}))
        found = search_interleaved(problem, instance, Watch(limit_s=600.0), wanted=wanted)
        if found.draft is not None:
            assert found.draft[0].template.chunks == 2
            assert len(found.draft[0].template.rows) == 2
