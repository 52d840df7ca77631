"""Balancing against all ways to cut the layers and choose the modes."""

from itertools import combinations, product
from math import inf
from random import Random

import numpy as np
import pytest

from planner.arrays import Arrays, IntArray, stage_bytes, stage_seconds
from planner.balance import balance
from planner.chains import no_limits
from planner.instance import Instance, arrays
from planner.pricing import priced
from tests.planner.tiny import tiny_problem


def brute_force(x: Arrays, rows: IntArray, in_flight: IntArray) -> float:
    """Smallest largest F + B over all cuts and modes that fit."""
    p, layers = len(rows), x.forward.shape[1] - 1
    best = inf
    for inner in combinations(range(1, layers), p - 1):
        cuts = (0, *inner, layers)
        for chosen in product(*(row[row >= 0].tolist() for row in rows)):
            slowest = 0.0
            for i, o in enumerate(chosen):
                used = stage_bytes(x, o, cuts[i], cuts[i + 1], layers, int(in_flight[i]))
                seconds = sum(stage_seconds(x, o, cuts[i], cuts[i + 1], layers))
                slowest = max(slowest, seconds if used <= x.budget[o] else inf)
            best = min(best, slowest)
    return best


def random_rows(random: Random, instance: Instance, stages: int) -> IntArray:
    options = range(len(instance.table.options))
    return np.array([random.sample(options, min(2, len(options))) for _ in range(stages)])


@pytest.mark.parametrize("seed", range(40))
def test_balance_equals_brute_force(seed: int) -> None:
    random = Random(seed)
    instance = priced(*tiny_problem(seed))
    stages = random.randint(1, instance.num_layers)
    x = arrays(instance, random.choice((1, 4)))
    rows = random_rows(random, instance, stages)
    in_flight = np.minimum(random.randint(1, 4), stages - np.arange(stages))

    slowest, chosen, cuts = balance(
        x, rows, rows, in_flight, no_limits(stages, instance.num_layers)
    )
    truth = brute_force(x, rows, in_flight)

    assert slowest == truth or slowest == pytest.approx(truth, rel=2e-3)
    assert slowest >= truth * (1 - 1e-12)
    if slowest < inf:
        assert cuts[0] == 0
        assert cuts[-1] == instance.num_layers
        assert (np.diff(cuts) > 0).all()
        assert all(o in row for o, row in zip(chosen, rows, strict=True))


def test_balance_keeps_to_the_limits_on_cuts() -> None:
    instance = priced(*tiny_problem(11))
    layers = instance.num_layers
    x = arrays(instance, 1)
    roomy = x._replace(budget=np.full_like(x.budget, 1e15))
    rows = np.array([[0], [0]])
    limits = no_limits(2, layers)
    limits[:, 0] = 1

    _, chosen, cuts = balance(roomy, rows, rows, np.ones(2, np.int64), limits)

    assert cuts.tolist() == [0, 1, layers]
    assert chosen.tolist() == [0, 0]
