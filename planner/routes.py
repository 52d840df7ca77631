"""Chains of pools as sketches: which pools, degrees and numbers of stages, for how many copies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from costmodel.schedules.registry import schedule
from planner.arrays import IntArray
from planner.chains import Parts
from planner.degrees import Degrees, best_of_pool, degrees, mode_rows, sample_sizes
from planner.instance import Instance, arrays
from planner.lengths import Choices, quickest
from planner.watch import Watch

WIDTH = 12
"""Degrees of a pool that are tried."""

WINDOW = 1.15
"""How much slower than the quickest a chain may seem and still be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Parts of a chain in so many copies, with a quick estimate of the pipeline time."""

    parts: Parts
    count: int
    quick_s: float


def routes(instance: Instance, orders: Sequence[tuple[int, ...]], watch: Watch) -> list[Route]:
    """The chains over (some of) the pools of each order, quickest first.

    Those that seem slower than ``WINDOW`` times the quickest, or the best step known, are left out.
    """
    limit_s = WINDOW * watch.best_s
    found: dict[tuple[Parts, int], Route] = {}
    for samples in _sizes(instance):
        for order in () if found and watch.expired() else orders:
            for route in _routes_of(instance, order, samples, limit_s):
                found.setdefault((route.parts, route.count), route)
                limit_s = min(limit_s, WINDOW * route.quick_s)
    ranked = sorted(found.values(), key=lambda r: (r.quick_s, r.count))
    return [route for route in ranked if route.quick_s <= limit_s]


def _sizes(instance: Instance) -> tuple[int, ...]:
    """Sequences per micro-batch at which some stage is a single copy; else more copies do it."""
    able = {d.samples for d in degrees(instance) if d.replicas == 1}
    return tuple(s for s in sample_sizes(instance) if s in able)


def _routes_of(
    instance: Instance, order: tuple[int, ...], samples: int, limit_s: float
) -> Iterator[Route]:
    tried = tuple(d for k in order for d in best_of_pool(instance, k, samples, WIDTH))
    if not tried:
        return
    visited = tuple(dict.fromkeys(d.pool for d in tried))
    place = np.array([visited.index(d.pool) for d in tried], np.int64)
    rows = mode_rows(tuple((d, 1) for d in tried), lean=False)
    chips = np.array([instance.chips[d.pool] for d in tried], np.int64)
    sizes = np.array([d.num_chips for d in tried], np.int64)
    for count in _counts(instance, tried, samples):
        choices = Choices(rows=rows, place=place, groups=chips // (sizes * count))
        microbatches = -(-instance.batch // (samples * count))
        kept = _kept(instance, microbatches)
        times, chains = quickest(arrays(instance, count), choices, kept, microbatches, limit_s)
        for seconds, chain in zip(times.tolist(), chains.tolist(), strict=True):
            limit_s = min(limit_s, WINDOW * seconds)
            taken: list[tuple[int, int]] = [(d, stages) for d, stages in chain if stages > 0]
            parts = tuple((tried[d], stages) for d, stages in taken)
            if min(d.replicas for d, _ in parts) == 1:
                yield Route(parts=parts, count=count, quick_s=seconds)


def _counts(instance: Instance, tried: tuple[Degrees, ...], samples: int) -> list[int]:
    """Copies at which some pool changes its number of stages, the most promising first.

    Promising: a short pipeline time if every pool ran its first degrees on all chips that fit.
    """
    most, deepest = instance.batch // samples, min(instance.space.max_stages, instance.num_layers)
    found: set[int] = set()
    for pool, size in {(d.pool, d.num_chips) for d in tried}:
        groups = instance.chips[pool] // size
        found |= {groups // depth for depth in range(1, min(groups, deepest) + 1)}
    best = {d.pool: d for d in reversed(tried)}

    def seconds(count: int) -> float:
        stages = {k: instance.chips[k] // (d.num_chips * count) for k, d in best.items()}
        speed = sum(n * best[k].num_chips / best[k].rate for k, n in stages.items())
        depth = min(deepest, sum(stages.values()))
        return (-(-instance.batch // (samples * count)) + depth - 1) / max(speed, 1e-30)

    return sorted((c for c in found if 1 <= c <= most), key=lambda c: (seconds(c), c))


@lru_cache(maxsize=4096)
def _kept(instance: Instance, microbatches: int) -> IntArray:
    """Micro-batches in flight at every position from the end, (P + 1,).

    Where they depend on the depth, as with weight gradients put off, those of 1F1B: the fewest.
    """
    kind = schedule(instance.space.schedules[0])
    kind = kind if kind.program is None else schedule("1f1b")
    deepest = min(instance.space.max_stages, instance.num_layers)
    kept = [kind.in_flight(deepest, deepest - j, microbatches) for j in range(1, deepest + 1)]
    return np.array([0, *kept], np.int64)
