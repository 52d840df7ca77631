"""Metis: orders of chip types, power-of-two groups of chips as stages, data parallelism first."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations, product

from costmodel.layout.rule_tools import divisors
from costmodel.layout.values import Layout
from planner.baselines.baseline import BaselineRule, Setting, best_of
from planner.chains import Parts, chain_candidate
from planner.degrees import Degrees, degrees
from planner.instance import Draft, Instance
from planner.pricing import with_options
from planner.watch import Watch

MOST_PERMUTED = 3
SKETCHED = 20_000
TRIED = 1_500
SCORED = 24
LIMIT_S = 5.0
"""Of its own: the method is known to run for hours where it is not stopped."""

Shape = tuple[int, int, int, int]
"""Pool, tp, replicas of one copy and micro-batch size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """Stages of each pool in so many copies, with the pipeline time if layers were divisible."""

    parts: Parts
    count: int
    quick_s: float


def propose(setting: Setting) -> Layout | None:
    """The best within the limits; no recomputation, expert or context parallelism."""
    whole = setting.instance
    kept = tuple(
        o
        for o in whole.space.options
        if o.recompute == "none" and o.ep == o.cp == 1 and o.zero == 1
    )
    if not kept:
        return None
    instance = with_options(whole, kept)
    left = max(0.0, setting.watch.limit_s - setting.watch.elapsed_s)
    return best_of(instance, _drafts(instance, Watch(limit_s=min(LIMIT_S, left))))


def _drafts(instance: Instance, watch: Watch) -> list[Draft]:
    sketches = sorted(islice(_sketches(instance), SKETCHED), key=lambda s: s.quick_s)
    found: list[tuple[float, int, Draft]] = []
    for sketch in sketches[:TRIED]:
        if found and (watch.expired() or sketch.quick_s > found[0][0] * 1.5):
            break
        candidate = chain_candidate(instance, sketch.parts, sketch.count)
        if candidate is not None:
            found.append((candidate.quick_s, len(found), candidate.draft))
    return [draft for _, _, draft in sorted(found)[:SCORED]]


def _sketches(instance: Instance) -> Iterator[Sketch]:
    shapes = _shapes(instance)
    pools = sorted({pool for pool, *_ in shapes})
    orders = list(permutations(pools)) if len(pools) <= MOST_PERMUTED else [tuple(pools)]
    for microbatches in divisors(instance.batch):
        for order, sizes in product(orders, _group_sizes(instance, pools)):
            yield from _of_groups(instance, shapes, (order, sizes), microbatches)


def _shapes(instance: Instance) -> dict[Shape, Degrees]:
    found: dict[Shape, Degrees] = {}
    for d in degrees(instance):
        option = instance.table.options[d.rows[0]]
        found[d.pool, option.tp, option.replicas, option.micro_batch_size] = d
    return found


def _group_sizes(instance: Instance, pools: list[int]) -> Iterator[dict[int, int]]:
    """Chips of a stage by pool: powers of two, at most twice as many in one pool as in another."""
    largest = max(instance.chips)
    for base in (2**k for k in range(largest.bit_length())):
        for factors in product((1, 2), repeat=len(pools)):
            sizes = {k: base * f for k, f in zip(pools, factors, strict=True)}
            if min(factors) == 1 and all(sizes[k] <= instance.chips[k] for k in pools):
                yield sizes


def _of_groups(
    instance: Instance,
    shapes: dict[Shape, Degrees],
    groups: tuple[tuple[int, ...], dict[int, int]],
    microbatches: int,
) -> Iterator[Sketch]:
    """Every number of copies and least tensor parallelism that the groups allow for."""
    order, sizes = groups
    depth = sum(instance.chips[k] // sizes[k] for k in order)
    if depth > min(instance.space.max_stages, instance.num_layers):
        return
    samples = instance.batch // microbatches
    for count in (2**k for k in range(min(sizes.values()).bit_length())):
        for least in (1, 2, 4, 8) if samples % count == 0 else ():
            chosen = [
                _degrees(shapes, k, sizes[k] // count, (samples // count, least)) for k in order
            ]
            known = [d for d in chosen if d is not None]
            if len(known) == len(order):
                stages = [instance.chips[k] // sizes[k] for k in order]
                yield _sketch(instance, tuple(zip(known, stages, strict=True)), count, microbatches)


def _degrees(
    shapes: dict[Shape, Degrees], pool: int, chips: int, wanted: tuple[int, int]
) -> Degrees | None:
    """As much data parallelism as ``least`` tensor parallelism leaves; wanted: samples, least."""
    samples, least = wanted
    for tp in (2**k for k in range(least.bit_length() - 1, chips.bit_length())):
        replicas = chips // tp
        if replicas and samples % replicas == 0:
            found = shapes.get((pool, tp, replicas, samples // replicas))
            if found is not None:
                return found
    return None


def _sketch(instance: Instance, parts: Parts, count: int, microbatches: int) -> Sketch:
    speed = sum(n * d.num_chips / (d.rate * d.samples) for d, n in parts)
    depth = sum(n for _, n in parts)
    quick = (microbatches + depth - 1) * instance.num_layers / speed
    return Sketch(parts=parts, count=count, quick_s=quick)


BASELINE = BaselineRule(
    name="metis",
    sentence="Orders of chip types, power-of-two groups of chips as stages, data before tensor "
    "parallelism, no recomputation; stopped after 5 s.",
    source="Metis, ATC 2024; github.com/SamsungLabs/Metis",
    order=6,
    propose=propose,
)
