"""Compiles the loops of the families before a clock starts (kept on disk, as all kernels are)."""

from functools import cache

import numpy as np

from planner.families.climb import climb, options_for
from planner.families.costs import BACKWARD, FORWARD, Costs
from planner.families.floors import chain_floor
from planner.families.ground import Ground, Limits
from planner.families.relax import least_chain
from planner.families.score import step_s
from planner.families.spans import list_spans, menus_of

LAYERS = 2


@cache
def make_ready() -> None:
    """Calls every compiled loop on one option that holds two layers."""
    x, one, cuts = _costs(), np.zeros(1, np.int64), np.array([0, LAYERS])
    options_for(x, one[None], cuts, 1, one.copy())
    climb(x, one[None], cuts, 1, 1)
    step_s(x, one, cuts, 1)
    spans = list_spans(x, np.zeros(LAYERS, np.int64), np.ones(LAYERS), one, 1, 9.0)
    menus = menus_of(spans, 1)
    ground = Ground(pool=one, units=one + 1, hop=np.zeros((1, 1)), kin=one, behind=one)
    limits = Limits(
        low=1.0,
        high=9.0,
        price=1.0,
        goal=9.0,
        microbatches=2,
        least=1,
        deepest=1,
        windows=True,
        pace_from=1,
        pace_to=1,
        weight=2.0,
        credit=1.0,
        each=0.0,
    )
    chain_floor(spans, menus, ground, limits)
    least_chain(spans, menus, ground, limits, np.zeros((9, 2), np.int64))


def _costs() -> Costs:
    layers, ends, one = np.zeros((8, 1, LAYERS + 1)), np.zeros((1, 8)), np.zeros(1, np.int64)
    layers[[FORWARD, BACKWARD]] = np.arange(LAYERS + 1)
    return Costs(
        layers=layers,
        first=ends,
        last=ends.copy(),
        shared=ends.copy(),
        room=np.ones(1),
        latency=np.zeros((1, 2)),
        hop=np.zeros((1, 1)),
        pool=one,
        chips=one + 1,
        exposed=np.zeros(2),
        overhead=np.zeros(2),
    )
