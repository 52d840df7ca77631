"""Proposes chains: sketched by a dynamic program, balanced, simulated, moved about.

Beside the chains over any pools come those that the baselines ask for: every pool alone, and all
pools without the slowest. A chain whose pipeline alone takes longer than the best step known is
not proposed, since synchronisation only adds to it.
"""

from collections.abc import Iterator
from itertools import permutations

from planner.chains import Candidate, by_room, chain_candidate, contiguous, outlines
from planner.degrees import slowest_pool
from planner.instance import Draft, Instance
from planner.route_moves import improved_route
from planner.routes import Route, routes
from planner.watch import Watch

MOST_PERMUTED = 4
"""Pools up to which every order is sketched."""

BALANCED = 300
FIRST = 4
MOVED = 8
SCORED = 40
BALANCED_PER_SUBSET = 60
SCORED_PER_SUBSET = 3


def chains(instance: Instance, watch: Watch) -> Iterator[Draft]:
    """Chains over any pools: the quickest few, those that moves make of them, then the others."""
    sketches = routes(instance, _orders(instance), watch)[:BALANCED]
    balanced = _balanced(instance, [*sketches, *_whole_pools(instance)], watch)
    yield from (c.draft for c, _ in balanced[:FIRST])
    moved = [improved_route(instance, r.parts, r.count, watch) for _, r in balanced[:MOVED]]
    others = sorted(
        [*(c for c in moved if c), *(c for c, _ in balanced[FIRST:])], key=lambda c: c.quick_s
    )
    for candidate in others[:SCORED]:
        if candidate.quick_s < watch.best_s:
            yield candidate.draft


def subset_chains(instance: Instance, watch: Watch) -> Iterator[Draft]:
    """The best chains over each pool alone and over all pools but the slowest."""
    pools, slowest = range(len(instance.chips)), slowest_pool(instance)
    without = [tuple(k for k in order if k != slowest) for order in _orders(instance)]
    subsets = [*([(k,)] for k in pools), list(dict.fromkeys(without))]
    for orders in subsets if len(pools) > 1 else ():
        if not watch.expired():
            sketches = routes(instance, orders, watch)[:BALANCED_PER_SUBSET]
            balanced = _balanced(instance, sketches, watch)
            yield from (c.draft for c, _ in balanced[:SCORED_PER_SUBSET])


def _whole_pools(instance: Instance) -> list[Route]:
    """Chains over one pool with all its chips, of few pools; sketches may prefer fewer stages."""
    if len(instance.chips) > MOST_PERMUTED:
        return []
    singles = tuple((k,) for k in range(len(instance.chips)))
    found = outlines(instance, singles, width=6)[:BALANCED_PER_SUBSET]
    return [Route(parts=o.parts, count=o.count, quick_s=o.ideal_s) for o in found]


def _balanced(
    instance: Instance, sketches: list[Route], watch: Watch
) -> list[tuple[Candidate, Route]]:
    """Those that fit with their layers dealt out, quickest first."""
    found: list[tuple[Candidate, Route]] = []
    for sketch in sketches:
        candidate = chain_candidate(instance, sketch.parts, sketch.count)
        if candidate is not None:
            found.append((candidate, sketch))
        if watch.expired():
            break
    return sorted(found, key=lambda pair: pair[0].quick_s)


def _orders(instance: Instance) -> list[tuple[int, ...]]:
    """All orders of few pools with islands in one piece; else the roomiest first, or last."""
    pools = range(len(instance.chips))
    if len(pools) <= MOST_PERMUTED:
        every = permutations(pools)
        return [o for o in every if contiguous([instance.islands[k] for k in o])]
    roomy = by_room(instance)
    return [roomy, roomy[::-1]]
