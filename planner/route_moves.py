"""Local search on a chain before its layers are final: order of pools, stages, degrees, copies.

Hand-overs between islands hold a pipeline up most near its end, where few micro-batches are in
flight; a sketch does not see that, the simulation of the balanced pipeline does and judges here.
"""

from collections.abc import Iterator
from itertools import combinations

from planner.chains import Candidate, Parts, chain_candidate
from planner.degrees import best_of_pool
from planner.instance import Instance
from planner.watch import Watch

GAIN = 1e-3
"""Least relative gain of a move."""

WIDTH = 6
"""Degrees of a pool that are tried."""


def improved_route(instance: Instance, parts: Parts, count: int, watch: Watch) -> Candidate | None:
    """The best chain that sweeps over the moves reach; None when the chain does not fit."""
    best = chain_candidate(instance, parts, count)
    improved = best is not None
    while improved and best is not None and not watch.expired():
        improved = False
        for move in moves(instance, parts, count):
            tried = chain_candidate(instance, *move)
            if tried and tried.quick_s < best.quick_s * (1 - GAIN):
                best, (parts, count), improved = tried, move, True
                break
    return best


def moves(instance: Instance, parts: Parts, count: int) -> Iterator[tuple[Parts, int]]:
    """Neighbours of a chain that the chips allow."""
    for new in _reordered(parts):
        yield new, count
    for new in (*_resized(instance, parts), *_joined(instance, parts, count)):
        if _allowed(instance, new, count):
            yield new, count


def _reordered(parts: Parts) -> Iterator[Parts]:
    for i, j in combinations(range(len(parts)), 2):
        swapped = list(parts)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        yield tuple(swapped)
    for i in range(len(parts)):
        rest = (*parts[:i], *parts[i + 1 :])
        yield from ((*rest[:j], parts[i], *rest[j:]) for j in range(len(parts)) if abs(i - j) > 1)


def _resized(instance: Instance, parts: Parts) -> Iterator[Parts]:
    """One stage more or fewer of a pool, none of it, or other degrees on the same chips."""
    for i, (d, stages) in enumerate(parts):
        before, after = parts[:i], parts[i + 1 :]
        yield (*before, (d, stages + 1), *after)
        if stages > 1:
            yield (*before, (d, stages - 1), *after)
        if len(parts) > 1:
            yield (*before, *after)
        for other in best_of_pool(instance, d.pool, d.samples, WIDTH):
            number = stages * d.num_chips // other.num_chips
            if other is not d and number > 0:
                yield (*before, (other, number), *after)


def _joined(instance: Instance, parts: Parts, count: int) -> Iterator[Parts]:
    """A pool that the chain leaves out, anywhere along it."""
    used = {d.pool for d, _ in parts}
    for pool in (k for k in range(len(instance.chips)) if k not in used):
        for d in best_of_pool(instance, pool, parts[0][0].samples, 2):
            stages = instance.chips[pool] // (d.num_chips * count)
            if stages > 0:
                yield from ((*parts[:i], (d, stages), *parts[i:]) for i in range(len(parts) + 1))


def _allowed(instance: Instance, parts: Parts, count: int) -> bool:
    return all(stages * d.num_chips * count <= instance.chips[d.pool] for d, stages in parts)
