"""A lower bound that knows that pipelines fill and drain (``docs/theory/bound.md``, theorem 2).

A stage that holds layer l under an option whose chips have room for D layers begins no earlier
than layer l - D + 1, so the layers up to l - D lie on stages before it: the first micro-batch has
to pass them before the stage has work, and the last gradient after it. That time is lost to the
stage's chips, whatever the rest of the layout does.
"""

import numpy as np

from costmodel.schedules.registry import schedule
from planner.arrays import FloatArray, IntArray
from planner.bound import SLACK, options_cost, work_bound
from planner.instance import Instance, arrays
from planner.programs import least_share
from planner.space import INTERLEAVED
from planner.values import Bound

BISECTIONS = 12
MARGIN = 1e-7
"""By how much a linear program has to miss its goal for a time to be ruled out."""


def ramp_bound(instance: Instance) -> float:
    """Seconds below which no layout of the space can do the batch's work; at least the work bound.

    Times are ruled out by bisection: with T seconds, chips of an option have
    ``T - lost(option, part)`` for each part, and the pools' chips must do for all parts.
    """
    low = work_bound(instance)
    lost = lost_seconds(instance)
    high = low + float(lost.max(initial=0.0))
    if not np.isfinite(low) or _chips_needed(instance, lost, low) <= 1 + MARGIN:
        return low
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if _chips_needed(instance, lost, middle) > 1 + MARGIN:
            low = middle
        else:
            high = middle
    return low * (1 - SLACK)


def lost_seconds(instance: Instance) -> FloatArray:
    """Seconds of the step in which a stage with this part and option has no work, (O, L + 2)."""
    table, most = instance.table, most_layers(instance)
    seconds = np.diff(table.layers.forward_s + table.layers.backward_s, axis=1).min(axis=0)
    passed = np.concatenate(([0.0], np.cumsum(seconds)))
    layers = np.arange(table.num_layers)
    before = passed[np.maximum(0, layers[None, :] - most[:, None] + 1)]
    return np.column_stack([np.zeros(len(most)), before, before[:, -1]])


def most_layers(instance: Instance) -> IntArray:
    """Layers that a stage of each option has room for at most, (O,).

    One micro-batch in flight, state sharded over as many pipelines as there are chips, the least
    short-lived buffers, no end blocks.
    """
    x, layers = arrays(instance, sum(instance.chips)), instance.num_layers
    used = x.dense * x.dense_bytes[:, None] + x.expert * x.expert_bytes[:, None] + x.kept
    room = x.budget * (1 + SLACK) - x.transient.min(axis=1)
    if instance.trained_share < 1.0:
        return np.full(len(used), layers, np.int64)
    fits = [(used[:, d:] - used[:, :-d]).min(axis=1) <= room for d in range(1, layers + 1)]
    return np.sum(fits, axis=0).astype(np.int64)


def _chips_needed(instance: Instance, lost: FloatArray, seconds: float) -> float:
    """Least share of every pool's chips that does the batch's work in so many seconds."""
    left = seconds - lost
    with np.errstate(divide="ignore"):
        each = np.where(left > 0, options_cost(instance) / np.maximum(left, 1e-300), np.inf)
    pools = range(len(instance.chips))
    cost = np.array(
        [each[instance.table.pool_index == k].min(axis=0, initial=np.inf) for k in pools]
    )
    return least_share(cost * instance.batch, np.array(instance.chips, dtype=np.float64))


def bound_for(instance: Instance, step_time_s: float, *, optimal: bool) -> Bound:
    """The bound that goes with a plan; the plan's own time when nothing in the space is faster.

    Ramps are proved for whole backwards: a stage with weight gradients left works while they drain;
    and for one run of layers a stage. Of several schedules it is for the first.
    """
    if optimal:
        return Bound(step_time_s=step_time_s, gap=0.0, method="enumeration")
    work, ramp = work_bound(instance), 0.0
    first = instance.space.schedules[0]
    if schedule(first).program is None and first != INTERLEAVED:
        ramp = ramp_bound(instance)
    proven = max(work, ramp) + instance.floor
    method = "ramp" if ramp > work else "work"
    return Bound(step_time_s=proven, gap=step_time_s / proven - 1.0, method=method)
