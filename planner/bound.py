"""A proven lower bound on the step time over the declared space (proof: ``docs/theory/bound.md``).

Work bound: every sequence of the batch passes every layer once on some pool, where it costs at
least the fewest chip-seconds of any option; a chip is busy at most for the step less the fixed
overhead. The pools share the layers so that all are done at the same time: a linear program.
"""

from functools import lru_cache

import numpy as np

from planner.arrays import FloatArray
from planner.instance import Instance
from planner.programs import least_share

SLACK = 1e-9
"""Relative allowance for rounding; the bound is lowered by it."""

EXACT = 1e-6
"""Gap up to which a plan counts as optimal."""


@lru_cache(maxsize=8)
def options_cost(instance: Instance) -> FloatArray:
    """Chip-seconds per sequence of each part under each option, shape (options, parts).

    Parts: the embedding, every layer, and the head with multi-token prediction.
    ``(F + B) chips / samples``.
    """
    table = instance.table
    layers = np.diff(table.layers.forward_s + table.layers.backward_s, axis=1)
    first = table.embedding.forward_s + table.embedding.backward_s
    last = table.head.forward_s + table.head.backward_s
    last = last + table.mtp.forward_s + table.mtp.backward_s
    parts = np.column_stack([first, layers, last])
    return parts * (table.num_chips / table.samples)[:, None]


@lru_cache(maxsize=8)
def chip_seconds(instance: Instance) -> FloatArray:
    """Fewest chip-seconds per sequence of each part on each pool, shape (pools, parts)."""
    cost, pools = options_cost(instance), range(len(instance.chips))
    of_pool = instance.table.pool_index
    return np.array([cost[of_pool == k].min(axis=0, initial=np.inf) for k in pools])


def work_bound(instance: Instance, pools: tuple[int, ...] | None = None) -> float:
    """Seconds below which no layout of the space can do the batch's work (on these pools).

    Infinite when none of the pools has options.
    ``min T`` with shares z of each part on each pool: ``sum_k z_kl = G``,
    ``sum_l cost_kl z_kl <= chips_k T``; like parts are one variable.
    """
    cost = chip_seconds(instance)
    chips = np.array(instance.chips, dtype=np.float64)
    usable = np.isfinite(cost).all(axis=1) & (chips > 0)
    if pools is not None:
        usable &= np.isin(np.arange(len(chips)), pools)
    if not usable.any():
        return float("inf")
    return least_share(cost[usable] * instance.batch, chips[usable]) * (1 - SLACK)
