"""Sketching and moving chains: the dynamic program against all chains, moves within the space."""

from itertools import product
from math import floor, inf
from random import Random

import numpy as np
import pytest

from planner.arrays import Arrays
from planner.chain_search import chains
from planner.chains import chain_candidate
from planner.instance import Instance, arrays, draft_chips, draft_samples, makespan
from planner.lengths import Choices, quickest
from planner.pricing import priced
from planner.route_moves import improved_route, moves
from planner.routes import routes
from planner.watch import Watch
from tests.planner.tiny import tiny_problem

SEEDS = range(20)
FOREVER = 3600.0


def watch() -> Watch:
    return Watch(limit_s=FOREVER)


def instance_of(seed: int) -> Instance:
    return priced(*tiny_problem(seed))


def most_layers(x: Arrays, stages: list[int], kept: list[int], tau: float) -> int:
    """Layers that these stages hold when all layers are alike; 0 when one of them holds none."""
    layers, total = x.forward.shape[1] - 1, 0  # tiny models have alike layers
    for j, o in zip(range(len(stages), 0, -1), stages, strict=True):
        seconds = (x.forward[o, -1] + x.backward[o, -1]) / layers
        static = x.dense[o, -1] * x.dense_bytes[o] / layers
        end = 1 if j == 1 else 0
        room = x.budget[o] - x.transient_peak[o]
        room -= end * (x.last_dense[o] * x.dense_bytes[o] + x.last_kept[o])
        left = tau - end * (x.last_forward[o] + x.last_backward[o])
        fits = floor(room / (static + kept[j] * x.kept[o, -1] / layers))
        held = min(layers, fits, floor(left / seconds * (1 + 1e-9)))
        if held < 1:
            return 0
        total += held
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_quickest_chain_is_no_deeper_than_any_at_its_limit(seed: int) -> None:
    """One option a pool: for the limit of each chain found, no shorter chain holds all layers."""
    random, instance = Random(seed), instance_of(seed)
    x, layers, m = arrays(instance, 1), instance.num_layers, random.randint(1, 6)
    pools = sorted(set(instance.table.pool_index.tolist()))
    of_pool = [np.flatnonzero(instance.table.pool_index == k).tolist() for k in pools]
    rows = [random.choice(options) for options in of_pool]
    groups = [random.randint(1, 3) for _ in pools]
    kept = [0, *(min(m, j) for j in range(1, layers + 1))]
    choices = Choices(
        rows=np.array([[row] for row in rows]),
        place=np.arange(len(pools)),
        groups=np.array(groups),
    )

    times, found = quickest(x, choices, np.array(kept), m, inf)

    for seconds, chain in zip(times.tolist(), found.tolist(), strict=True):
        stages = [row for row, (_, n) in zip(rows, chain, strict=True) for _ in range(n)]
        tau = seconds / (m + len(stages) - 1)
        assert all(n <= most for (_, n), most in zip(chain, groups, strict=True))
        assert most_layers(x, stages, kept, tau * (1 + 1e-9)) >= layers
        for counts in product(*(range(most + 1) for most in groups)):
            if 0 < sum(counts) < len(stages):
                other = [row for row, n in zip(rows, counts, strict=True) for _ in range(n)]
                assert most_layers(x, other, kept, tau * (1 - 1e-9)) < layers


@pytest.mark.parametrize("seed", SEEDS)
def test_chains_use_the_batch_within_the_chips(seed: int) -> None:
    instance = instance_of(seed)
    for draft in chains(instance, watch()):
        assert draft_samples(instance, draft) == instance.batch
        assert (draft_chips(instance, draft) <= np.array(instance.chips)).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_moves_stay_within_the_chips_and_never_make_it_slower(seed: int) -> None:
    instance = instance_of(seed)
    order = tuple(range(len(instance.chips)))
    for route in routes(instance, [order], watch())[:5]:
        start = chain_candidate(instance, route.parts, route.count)
        end = improved_route(instance, route.parts, route.count, watch())
        for parts, count in moves(instance, route.parts, route.count):
            used = np.zeros(len(instance.chips), np.int64)
            for d, stages in parts:
                used[d.pool] += d.num_chips * stages * count
            assert (used <= np.array(instance.chips)).all()

        assert (start is None) == (end is None)
        if start is not None and end is not None:
            assert end.quick_s <= start.quick_s
            entry = end.draft[0]
            assert end.quick_s == makespan(instance, entry.template, entry.microbatches)
