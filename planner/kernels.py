"""Makes the compiled loops ready before a search's clock starts.

Numba compiles on first use (some 20 s, once an installation: the result is kept on disk) and loads
what it kept in some tenths of a second. Neither is search.
"""

from functools import cache

import numpy as np

from costmodel.schedules.registry import schedule
from planner.arrays import Arrays, stage_bytes, template_seconds
from planner.balance import balance
from planner.chains import no_limits
from planner.families import ready
from planner.lengths import Choices, quickest
from planner.space import SEARCHED_SCHEDULES


@cache
def make_ready() -> None:
    """Calls every compiled loop on one option with two layers."""
    ready.make_ready()
    x = _two_layers()
    rows, one = np.zeros((1, 1), np.int64), np.ones(1, np.int64)
    choices = Choices(rows=rows, place=np.zeros(1, np.int64), groups=one)
    template_seconds(x, np.zeros(1, np.int64), np.array([0, 2]), 2)
    stage_bytes(x, 0, 0, 2, 2, 1)
    balance(x, rows, rows, one, no_limits(1, 2))
    quickest(x, choices, np.array([0, 1]), 1, float("inf"))
    for kind in SEARCHED_SCHEDULES:
        schedule(kind).simulate(np.ones(1), np.ones(1), np.zeros(0), np.zeros(0), 1)


def _two_layers() -> Arrays:
    prefix = np.array([[0.0, 1.0, 2.0]])
    matrices = {"forward", "backward", "dense", "expert", "kept"}
    fields = {name: prefix if name in matrices else np.ones(1) for name in Arrays._fields}
    return Arrays(**(fields | {"transient": np.zeros((1, 2)), "budget": np.full(1, 100.0)}))
