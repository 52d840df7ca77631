"""Labels and lists of a cell against plain loops over every template."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from costmodel.schedules.registry import schedule
from planner.certificate.cell_terms import Case, Cell, Goal, Regime
from planner.certificate.enumeration_kernel import BROKEN, COMPLETE, enumerate_cell
from planner.certificate.label_kernel import STEPS, cheapest_from, empty_labels, labels
from planner.certificate.relaxed import Offer

OPTIONS, LAYERS, DEEPEST, BATCH = 3, 5, 4, 12
SEEDS = range(60)
PLENTY = 10**6
ALL = np.ones(DEEPEST + 1, np.bool_)

Template = tuple[tuple[int, ...], tuple[int, ...]]
"""(options, layers) of the stages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Random:
    """A cell with its case, and how many micro-batches it is asked for."""

    case: Case
    cell: Cell
    m: int

    @property
    def gpipe(self) -> bool:
        """Whether all micro-batches are in flight."""
        return self.case.regime.gpipe


def cell_of_seed(seed: int) -> Random:
    """Deep 1F1B, shallow 1F1B and GPipe in turn."""
    draw = np.random.default_rng(seed)
    work = draw.uniform(0.5, 2.0, OPTIONS)
    rooms = [draw.integers(1, LAYERS + 1, (OPTIONS, DEEPEST + 1)) for _ in range(4)]
    rooms = [np.sort(room, axis=1)[:, ::-1].copy() for room in rooms]
    none = np.zeros(OPTIONS)
    offer = Offer(
        work=work,
        forward=work * draw.uniform(0.2, 0.5, OPTIONS),
        first_work=none + 0.1,
        first_forward=none + 0.03,
        last_work=none + 0.3,
        last_forward=none + 0.1,
        hand_over=draw.uniform(0.0, 0.3, OPTIONS),
        tail=draw.uniform(0.0, 0.5, OPTIONS)[:, None] * np.arange(LAYERS + 1.0),
        inner=rooms[0],
        first=rooms[1],
        last=rooms[2],
        alone=rooms[3],
    )
    deep, gpipe = seed % 3 == 0, seed % 3 == 2
    m = int(draw.integers(3, 9) if deep else draw.integers(2, 4))
    regime = Regime(deep=deep, least=0 if deep else 2, most=BATCH if deep else 3, gpipe=gpipe)
    low = float(draw.uniform(1.5, 4.0))
    budget = low * float(draw.uniform(m, m + 6.0))
    tolls = draw.uniform(0.3, 1.0, OPTIONS) * draw.uniform(0.7, 1.6) * m
    case = Case(offer, tolls, Goal(2, budget, 0.1, 2 * BATCH), regime)
    cell = Cell(low, 1.3 * low, float(draw.uniform(0.0, 0.3)), 2.0 if deep else 1.0, m)
    return Random(case=case, cell=cell, m=m)


def stage_seconds(x: Random, t: Template) -> tuple[list[float], list[float]]:
    """Forward and backward seconds of the stages."""
    offer, last = x.case.offer, len(t[0]) - 1
    forward: list[float] = []
    backward: list[float] = []
    for i, (o, n) in enumerate(zip(*t, strict=True)):
        u, f = offer.work[o] * n, offer.forward[o] * n
        if i == 0:
            u, f = u + offer.first_work[o], f + offer.first_forward[o]
        if i == last:
            u, f = u + offer.last_work[o], f + offer.last_forward[o]
        forward.append(float(f))
        backward.append(float(u - f))
    return forward, backward


def fits(x: Random, t: Template) -> bool:
    """Whether every stage holds its layers with its micro-batches in flight."""
    offer, p = x.case.offer, len(t[0])
    for i, (o, n) in enumerate(zip(*t, strict=True)):
        rooms = (
            (offer.alone if p == 1 else offer.first)
            if i == 0
            else (offer.last if i == p - 1 else offer.inner)
        )
        if n > rooms[o, min(x.m, DEEPEST if x.gpipe else p - i)]:
            return False
    return True


def templates(x: Random) -> Iterator[Template]:
    """Those whose longest stage lies in the cell, that fit, and whose m belongs to the regime."""
    for p in range(1, DEEPEST + 1):
        if (x.m <= p) if x.case.regime.deep else (x.m > p and not x.gpipe):
            continue
        for held in product(range(1, LAYERS + 1), repeat=p):
            if sum(held) != LAYERS:
                continue
            for options in product(range(OPTIONS), repeat=p):
                t = options, held
                longest = max(f + b for f, b in zip(*stage_seconds(x, t), strict=True))
                if x.cell.low_s <= longest <= x.cell.high_s and fits(x, t):
                    yield t


def pays(x: Random, t: Template) -> bool:
    """Whether its chips cost no more than its micro-batches earn."""
    goal = x.case.goal
    return sum(x.case.tolls[o] for o in t[0]) <= goal.samples * x.m - goal.toll


def simulated(x: Random, t: Template) -> float:
    """Seconds until the end of the step, with half a hand-over each way."""
    forward, backward = stage_seconds(x, t)
    hops = np.array([0.5 * x.case.offer.hand_over[o] for o in t[0][:-1]])
    kind = schedule("gpipe" if x.gpipe else "1f1b")
    seconds = kind.simulate(np.array(forward), np.array(backward), hops, hops, x.m)[0]
    return float(seconds + x.case.offer.tail[t[0][0], t[1][0]])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_template_that_runs_is_never_hidden_by_labels(seed: int) -> None:
    x = cell_of_seed(seed)
    known = empty_labels(DEEPEST, LAYERS)
    known.left[0] = PLENTY
    labels(x.case, x.cell, x.m, ALL, known)
    running = [t for t in templates(x) if pays(x, t) and simulated(x, t) <= x.case.goal.budget_s]

    assert known.left[0] > 0
    assert {len(t[0]) for t in running} <= {p for p in range(DEEPEST + 1) if known.whole[p]}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cell_is_broken_exactly_by_templates_that_run_and_pay(seed: int) -> None:
    x = cell_of_seed(seed)
    profit = np.full((DEEPEST + 1, x.m + 1), -1.0)
    stages = [p for p in range(1, DEEPEST + 1) if x.gpipe or (x.m > p) == x.case.regime.deep]
    profit[stages, x.m] = 1.0
    known = empty_labels(DEEPEST, LAYERS)
    known.left[0] = PLENTY
    answer, found, p = enumerate_cell(x.case, x.cell, profit, PLENTY, known)
    running = {t for t in templates(x) if pays(x, t) and simulated(x, t) <= x.case.goal.budget_s}

    assert answer == (BROKEN if running else COMPLETE)
    if answer == BROKEN:
        assert (tuple(found[:p, 0].tolist()), tuple(found[:p, 1].tolist())) in running


def test_the_cells_are_of_both_kinds_and_labels_close_some() -> None:
    broken = closed = 0
    for seed in SEEDS:
        x = cell_of_seed(seed)
        known = empty_labels(DEEPEST, LAYERS)
        known.left[0] = PLENTY
        labels(x.case, x.cell, x.m, ALL, known)
        closed += not known.whole.any()
        broken += any(pays(x, t) and simulated(x, t) <= x.case.goal.budget_s for t in templates(x))

    assert min(broken, closed) >= 5


def test_nothing_is_known_before_the_first_label_and_the_least_cost_after_it() -> None:
    x = cell_of_seed(0)
    known = empty_labels(DEEPEST, LAYERS)
    known.left[0] = PLENTY
    labels(x.case, x.cell, x.m, ALL, known)

    assert cheapest_from(known, 0, 0, 0, STEPS) == 0.0
    assert cheapest_from(known, 1, 0, 0, STEPS) > PLENTY
