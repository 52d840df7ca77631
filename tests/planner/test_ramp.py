"""The ramp bound: its parts against plain loops; that it says more than the work bound."""

import numpy as np
import pytest

from planner.arrays import stage_bytes
from planner.bound import work_bound
from planner.instance import Instance, arrays
from planner.pricing import priced
from planner.ramp import lost_seconds, most_layers, ramp_bound
from tests.planner.tiny import tiny_problem

SEEDS = range(40)


def instance_of(seed: int) -> Instance:
    return priced(*tiny_problem(seed))


def one_way_seconds(instance: Instance, layer: int) -> float:
    passes = instance.table.layers.forward_s + instance.table.layers.backward_s
    return min(float(row[layer + 1] - row[layer]) for row in passes)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_stage_that_fits_holds_more_layers(seed: int) -> None:
    instance = instance_of(seed)
    x, layers = arrays(instance, sum(instance.chips)), instance.num_layers
    for row, most in enumerate(most_layers(instance).tolist()):
        for start in range(layers):
            for stop in range(start + 1, layers + 1):
                if stage_bytes(x, row, start, stop, layers, 1) <= x.budget[row]:
                    assert stop - start <= most


@pytest.mark.parametrize("seed", SEEDS)
def test_lost_time_is_that_of_the_layers_that_must_lie_before(seed: int) -> None:
    instance = instance_of(seed)
    most, lost = most_layers(instance), lost_seconds(instance)
    for row in range(len(most)):
        for layer in range(instance.num_layers):
            before = range(max(0, layer - int(most[row]) + 1))
            expected = sum(one_way_seconds(instance, j) for j in before)
            assert lost[row, layer + 1] == pytest.approx(expected)
        assert lost[row, 0] == 0.0
        assert lost[row, -1] == lost[row, -2]


@pytest.mark.parametrize("seed", SEEDS)
def test_ramp_bound_is_no_weaker_than_the_work_bound(seed: int) -> None:
    instance = instance_of(seed)

    assert ramp_bound(instance) >= work_bound(instance) * (1 - 1e-8)


def test_it_says_more_where_memory_forces_stages_apart() -> None:
    gains = [ramp_bound(i) / work_bound(i) for i in map(instance_of, SEEDS)]

    assert max(gains) > 1.05
    assert np.isfinite(gains).all()
