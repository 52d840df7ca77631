"""Layouts of one pipeline shape: equal degrees with uneven stages, and chains of pools.

A chain visits pools one after the other, each with its own degrees and several stages, and the
same pipeline runs in ``count`` copies. A chain over one pool is the classic uniform-degree layout
with uneven stages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, permutations, product

import numpy as np

from planner.arrays import IntArray
from planner.balance import balance
from planner.degrees import Degrees, best_of_pool, mode_rows, sample_sizes
from planner.instance import (
    Draft,
    Entry,
    Instance,
    Template,
    arrays,
    in_flight,
    makespan,
)

Parts = tuple[tuple[Degrees, int], ...]
"""(degrees, number of stages) of each pool along the chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A layout with its quick time: the simulated makespan without synchronisation."""

    draft: Draft
    quick_s: float


def no_limits(num_stages: int, num_layers: int) -> IntArray:
    """Cuts that may lie anywhere."""
    limits = np.zeros((2, num_stages), np.int64)
    limits[1] = num_layers
    return limits


def template_for(
    instance: Instance, parts: Parts, *, microbatches: int, pipelines: int, lean: bool = False
) -> Template | None:
    """The balanced pipeline over these parts; None when the model does not fit.

    pipelines: how many share every layer, which decides what ZeRO leaves on a chip. lean: all
    stages have the highest ZeRO stage, so that pipelines of different cuts agree.
    """
    p = sum(stages for _, stages in parts)
    if p > min(instance.space.max_stages, instance.num_layers):
        return None
    kept = tuple(in_flight(instance, p, microbatches).tolist())
    return _balanced(instance, parts, kept, pipelines, lean)


@lru_cache(maxsize=100_000)
def _balanced(
    instance: Instance, parts: Parts, kept: tuple[int, ...], pipelines: int, lean: bool
) -> Template | None:
    p = sum(stages for _, stages in parts)
    slowest, rows, cuts = balance(
        arrays(instance, pipelines),
        mode_rows(parts, lean=True),
        mode_rows(parts, lean=lean),
        np.array(kept, np.int64),
        no_limits(p, instance.num_layers),
    )
    if not np.isfinite(slowest):
        return None
    return Template(rows=tuple(rows.tolist()), cuts=tuple(cuts.tolist()))


def spread(instance: Instance, template: Template, count: int, samples: int) -> Draft | None:
    """``count`` copies that share the batch as evenly as possible; None when it has too few."""
    total = instance.batch // samples
    least, more = divmod(total, count)
    if least == 0:
        return None
    parts = ((more, least + 1), (count - more, least))
    return tuple(Entry(template=template, count=n, microbatches=m) for n, m in parts if n > 0)


def chain_candidate(instance: Instance, parts: Parts, count: int) -> Candidate | None:
    """``count`` copies of the balanced chain, with its quick time."""
    samples = parts[0][0].samples
    microbatches = -(-instance.batch // (samples * count))
    template = template_for(instance, parts, microbatches=microbatches, pipelines=count)
    if template is None:
        return None
    draft = spread(instance, template, count, samples)
    if draft is None:
        return None
    return Candidate(draft=draft, quick_s=makespan(instance, template, draft[0].microbatches))


def counts_for(instance: Instance, chosen: tuple[Degrees, ...]) -> tuple[int, ...]:
    """Numbers of copies worth trying: those at which some pool changes its number of stages."""
    most = min(instance.chips[d.pool] // d.num_chips for d in chosen)
    found: set[int] = set()
    for d in chosen:
        groups = instance.chips[d.pool] // d.num_chips
        deepest = min(instance.space.max_stages, instance.num_layers, groups)
        found |= {groups // depth for depth in range(1, deepest + 1)}
    return tuple(sorted(c for c in found if 1 <= c <= most))


def chain_parts(instance: Instance, chosen: tuple[Degrees, ...], count: int) -> Parts:
    """As many stages of each pool as its chips allow for ``count`` copies."""
    return tuple((d, instance.chips[d.pool] // (d.num_chips * count)) for d in chosen)


def pool_orders(instance: Instance, longest: int) -> Iterator[tuple[int, ...]]:
    """Sequences of different pools, short ones first; islands are visited once each.

    Beyond the longest free sequence come chains over all pools and all but one, roomiest first.
    """
    pools = range(len(instance.chips))
    for length in range(1, min(longest, len(instance.chips)) + 1):
        for order in permutations(pools, length):
            if contiguous([instance.islands[k] for k in order]):
                yield order
    if longest < len(instance.chips):
        every = by_room(instance)
        yield every
        yield from (tuple(k for k in every if k != gone) for gone in pools)


def by_room(instance: Instance) -> tuple[int, ...]:
    """Pools with most memory first, an island's pools together: early stages keep most."""
    table = instance.table
    room = [
        float(table.capacity_bytes[table.pool_index == k].max(initial=0.0))
        for k in range(len(instance.chips))
    ]
    best = dict.fromkeys(instance.islands, 0.0)
    for pool, island in zip(room, instance.islands, strict=True):
        best[island] = max(best[island], pool)
    key = [(-best[i], i, -r) for r, i in zip(room, instance.islands, strict=True)]
    return tuple(sorted(range(len(room)), key=key.__getitem__))


def contiguous(islands: list[int]) -> bool:
    """Whether every island is visited once."""
    changes = sum(a != b for a, b in pairwise(islands))
    return changes == len(set(islands)) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A chain before its layers are dealt out, with an optimistic step time and its pools."""

    parts: Parts
    count: int
    ideal_s: float
    pools: frozenset[int]


def outlines(
    instance: Instance, orders: tuple[tuple[int, ...], ...], *, width: int
) -> list[Outline]:
    """Every chain over the given pool orders with the ``width`` best degrees of each pool."""
    found: list[Outline] = []
    for samples in sample_sizes(instance):
        for order in orders:
            tried = width if len(order) == 1 else max(1, width // len(order))
            choices = [best_of_pool(instance, k, samples, tried) for k in order]
            for chosen in product(*choices):
                if min(d.replicas for d in chosen) == 1:  # else the same in more copies
                    found += _outlines_of(instance, chosen, samples)
    return sorted(found, key=lambda o: o.ideal_s)


def _outlines_of(instance: Instance, chosen: tuple[Degrees, ...], samples: int) -> list[Outline]:
    found: list[Outline] = []
    layers, total = instance.num_layers, instance.batch // samples
    deepest = min(instance.space.max_stages, layers)
    pools = frozenset(d.pool for d in chosen)
    speeds = [d.num_chips / (d.rate * samples) for d in chosen]
    for count in counts_for(instance, chosen):
        parts = chain_parts(instance, chosen, count)
        depth, speed = 0, 0.0
        for (_, stages), layers_per_s in zip(parts, speeds, strict=True):
            depth += stages
            speed += stages * layers_per_s
        if depth <= deepest:
            ideal = (-(-total // count) + depth - 1) * layers / speed
            found.append(Outline(parts=parts, count=count, ideal_s=ideal, pools=pools))
    return found
