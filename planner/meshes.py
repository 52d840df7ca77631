"""Layouts with one set of degrees for all stages: what frameworks with one device mesh run.

Groups of chips are numbered through the pools in some order; group g is copy ``g % d`` of stage
``g // d`` (ranks as Megatron numbers them), or every pool runs whole pipelines side by side. The
layers are cut anywhere, at the same places for all copies.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappop, heappush
from itertools import accumulate, count, pairwise

import numpy as np

from costmodel.layout.rule_tools import divisors
from planner.balance import balance
from planner.chains import no_limits
from planner.degrees import options_replicas
from planner.instance import Draft, Entry, Instance, Template, arrays, in_flight

Rows = tuple[int, ...]
"""Option row of each pool of an order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """A layout before its layers are cut.

    rows: option row of each pool. groups: of each pool that are used. side_by_side: every pool
    runs whole copies; otherwise groups are numbered through the pools.
    quick_s: pipeline time if the layers were divisible and everything fitted.
    """

    rows: Rows
    groups: tuple[int, ...]
    copies: int
    depth: int
    side_by_side: bool
    microbatches: int
    quick_s: float

    @property
    def kinds(self) -> tuple[tuple[Rows, int], ...]:
        """Option rows of the stages of every kind of copy, and how many copies are of it."""
        if self.side_by_side:
            return tuple(
                ((row,) * self.depth, g // self.depth)
                for row, g in zip(self.rows, self.groups, strict=True)
            )
        return in_rank_order(self.rows, self.groups, self.copies)


def shared_options(instance: Instance) -> list[dict[int, int]]:
    """Rows by pool of the options that differ in nothing but the pool.

    Replicas that could as well be copies are left out, and ZeRO stages above the largest one.
    """
    found: dict[object, dict[int, int]] = {}
    for row, option in enumerate(instance.table.options):
        if options_replicas(option) == 1 and option.zero <= instance.largest_zero:
            key = replace(option, pool="")
            found.setdefault(key, {})[int(instance.table.pool_index[row])] = row
    return list(found.values())


def meshes(instance: Instance, orders: Sequence[tuple[int, ...]]) -> Iterator[Mesh]:
    """Meshes over the pools of each order, under every option that all of them offer.

    The quickest first; those of an order and option are made when nothing quicker is left.
    """
    made: list[tuple[float, int, Mesh]] = []
    number = count()
    for least_s, order, rows in sorted(_kinds(instance, orders)):
        while made and made[0][0] <= least_s:
            yield heappop(made)[-1]
        for mesh in _meshes_of(instance, order, rows):
            heappush(made, (mesh.quick_s, next(number), mesh))
    while made:
        yield heappop(made)[-1]


def _kinds(
    instance: Instance, orders: Sequence[tuple[int, ...]]
) -> Iterator[tuple[float, tuple[int, ...], Rows]]:
    """Orders with the rows of an option, and seconds that none of their meshes is below."""
    for shared in shared_options(instance):
        work = {k: work_seconds(instance)[row] for k, row in shared.items()}
        groups = {
            k: instance.chips[k] // instance.table.num_chips[row] for k, row in shared.items()
        }
        samples = int(instance.table.samples[next(iter(shared.values()))])
        for order in orders:
            if all(k in shared for k in order):
                speed = sum(float(groups[k]) / work[k] for k in order)
                least_s = instance.batch / samples / speed * (1 - 1e-9) if speed else float("inf")
                yield least_s, order, tuple(shared[k] for k in order)


def _meshes_of(instance: Instance, order: tuple[int, ...], rows: Rows) -> Iterator[Mesh]:
    size, samples = int(instance.table.num_chips[rows[0]]), int(instance.table.samples[rows[0]])
    groups = tuple(instance.chips[k] // size for k in order)
    deepest = min(instance.space.max_stages, instance.num_layers)
    total, rest = divmod(instance.batch, samples)
    if rest or min(groups) == 0:
        return
    work = [work_seconds(instance)[row] for row in rows]
    binary = tuple(1 << (g.bit_length() - 1) for g in groups)
    for copies in divisors(total):
        whole, even = (tuple(g // copies * copies for g in gs) for gs in (groups, binary))
        for used in dict.fromkeys((whole, even, _trimmed(groups, copies))):
            depth = sum(used) // copies
            if min(used) > 0 and depth <= deepest and _has_room(instance, rows, used, copies):
                quick = (total // copies + depth - 1) / _stages_per_s(work, used, copies)
                yield _mesh(rows, used, (copies, depth), total // copies, quick)
    for depth in range(1, deepest + 1) if len(order) > 1 else ():
        counts = tuple(g // depth for g in groups)
        copies = sum(counts)
        used = tuple(n * depth for n in counts)
        if min(counts) > 0 and total % copies == 0 and _has_room(instance, rows, used, copies):
            quick = (total // copies + depth - 1) * max(work) / depth
            yield replace(
                _mesh(rows, used, (copies, depth), total // copies, quick), side_by_side=True
            )


def _mesh(
    rows: Rows, groups: tuple[int, ...], shape: tuple[int, int], microbatches: int, quick_s: float
) -> Mesh:
    copies, depth = shape
    return Mesh(
        rows=rows,
        groups=groups,
        copies=copies,
        depth=depth,
        side_by_side=False,
        microbatches=microbatches,
        quick_s=quick_s,
    )


def _has_room(instance: Instance, rows: Rows, groups: Sequence[int], copies: int) -> bool:
    """Whether the chips of the stages could hold the model if its bytes were divisible.

    A stage holds at most ``budget / bytes of all layers`` of them; one that several pools share
    counts in parts, which is no less.
    """
    shares = _held_shares(instance, copies)
    return sum(shares[row] * n for row, n in zip(rows, groups, strict=True)) >= copies


@lru_cache(maxsize=512)
def _held_shares(instance: Instance, copies: int) -> tuple[float, ...]:
    """Share of the layers that a stage of each option holds at most, one micro-batch in flight."""
    x = arrays(instance, copies)
    held = x.dense[:, -1] * x.dense_bytes + x.expert[:, -1] * x.expert_bytes + x.kept[:, -1]
    return tuple((x.budget * (1 + 1e-9) / np.maximum(held, 1.0)).tolist())


@lru_cache(maxsize=8)
def work_seconds(instance: Instance) -> tuple[float, ...]:
    """F + B of all layers under each option."""
    layers = instance.table.layers
    return tuple((layers.forward_s + layers.backward_s)[:, -1].tolist())


def _stages_per_s(work: Sequence[float], groups: Sequence[int], copies: int) -> float:
    """Summed speeds of the stages; one that several pools share is as slow as the slowest."""
    speed, shared, filled = 0.0, 0.0, 0
    for seconds, number in zip(work, groups, strict=True):
        if filled:
            shared = max(shared, seconds)
            taken = min(number, copies - filled)
            filled += taken
            number -= taken
            if filled == copies:
                speed, filled = speed + 1.0 / shared, 0
        whole, rest = divmod(number, copies)
        speed += whole / seconds
        if rest:
            shared, filled = seconds, rest
    return speed


def _trimmed(groups: tuple[int, ...], copies: int) -> tuple[int, ...]:
    """As many groups as make whole stages; the last pools give up the rest."""
    left, used = sum(groups) // copies * copies, list[int]()
    for g in groups:
        used.append(min(g, left))
        left -= used[-1]
    return tuple(used)


def in_rank_order(rows: Rows, groups: Sequence[int], copies: int) -> tuple[tuple[Rows, int], ...]:
    """Kinds of copies and how many of each.

    Group g is copy ``g % copies`` of stage ``g // copies``.

    groups: of each pool, whose option is in ``rows``; they fill whole stages together.
    """
    ends = list(accumulate(groups))
    stages = ends[-1] // copies
    changes = sorted({0, *(end % copies for end in ends)})
    kinds: Counter[Rows] = Counter()
    for first, stop in pairwise((*changes, copies)):
        kind = tuple(rows[bisect_right(ends, i * copies + first)] for i in range(stages))
        kinds[kind] += stop - first
    return tuple(kinds.items())


def balanced_draft(instance: Instance, mesh: Mesh) -> Draft | None:
    """The mesh with its layers cut so that the slowest stage is as fast as can be.

    A stage with chips of several pools is as slow as the slowest of them. None when the layers do
    not fit.
    """
    work, depth = work_seconds(instance), mesh.depth
    columns = zip(*(stages for stages, _ in mesh.kinds), strict=True)
    slowest = [max(column, key=work.__getitem__) for column in columns]
    rows = np.array(slowest, np.int64).reshape(-1, 1)
    kept = in_flight(instance, depth, mesh.microbatches)
    limits = no_limits(depth, instance.num_layers)
    seconds, _, cuts = balance(arrays(instance, mesh.copies), rows, rows, kept, limits)
    return cut_at(mesh, tuple(cuts.tolist())) if np.isfinite(seconds) else None


def cut_at(mesh: Mesh, cuts: tuple[int, ...]) -> Draft:
    """The mesh with its layers cut there."""
    return tuple(
        Entry(template=Template(rows=rows, cuts=cuts), count=count, microbatches=mesh.microbatches)
        for rows, count in mesh.kinds
    )
