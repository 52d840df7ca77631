"""The fastest interleaved chain with one set of degrees that the search finds, and a bound on all.

Chains are grouped by options, copies, micro-batches and stages; groups are looked at best bound
first. A group's bound holds for every number of chunks, order of pools and cut of layers.
"""

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from dataclasses import field as member
from functools import lru_cache
from itertools import count, permutations

import numpy as np

from costmodel.layout.rule_tools import divisors
from costmodel.layout.values import StageOption
from costmodel.problem import Problem
from planner.arrays import FloatArray, IntArray
from planner.families.branch import FamilyResult
from planner.families.cells import Cell, cells, work_seconds
from planner.families.links import Links, links_of
from planner.instance import Draft, Instance, Score, layout_of
from planner.interleaving.bound import (
    Chain,
    chain_bound,
    chain_of,
    has_room,
    most_layers,
    pools_of_stages,
    quick_bound,
)
from planner.interleaving.deal import Dealt, climbed, dealt, draft_of
from planner.interleaving.enumeration import every_chain
from planner.interleaving.terms import Field, field_of
from planner.watch import Watch

SPACE = "interleaved/1"
MOST_PERMUTED = 4
FIRST_LIMIT = 2.0
"""Times the quick bound up to which a first group is bounded while no layout is known."""

MOST_TRIED = 60
"""Groups in which layouts are looked for; the search ends at the next one."""

BRIEF, CLIMBED = 60, 400
PROMISING = 1.03
"""How much slower than the best a chain may be and still be moved about further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What chains may be like.

    chunks: runs of layers on a stage, depths: stages; empty for any. one_vendor: of all pools.
    """

    chunks: frozenset[int] = frozenset()
    depths: frozenset[int] = frozenset()
    one_vendor: bool = False


ANY_CHAIN = Wanted()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Group:
    cell: Cell
    depth: int
    chain: Chain | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class _Search:
    instance: Instance
    links: Links
    watch: Watch
    wanted: Wanted
    best_s: float
    heap: list[tuple[float, int, _Group]] = member(default_factory=list[tuple[float, int, _Group]])
    numbers: "count[int]" = member(default_factory=count)
    fields: dict[int, Field] = member(default_factory=dict[int, Field])
    best: tuple[Draft, Score] | None = None
    closed_s: float = float("inf")
    spent: int = 0
    tries: int = 0

    def push(self, bound_s: float, group: _Group) -> None:
        if bound_s < self.best_s:
            heapq.heappush(self.heap, (bound_s, next(self.numbers), group))

    def begin(self, found: Iterator[Cell]) -> None:
        """Puts all groups on the heap; where the clock ends it, nothing is proved."""
        for cell in found:
            if self.watch.expired() and self.best_s < float("inf"):
                self.closed_s = 0.0
                return
            if cell.quick_s < self.best_s:
                for group, bound_s in _groups(self.instance, cell, self.wanted):
                    self.push(bound_s, group)

    def run(self, goal: float) -> None:
        while self.heap and not (self.watch.expired() and self.best_s < float("inf")):
            bound_s, _, group = self.heap[0]
            done = bound_s >= self.best_s / (1 + goal) or self.tries >= MOST_TRIED
            if done and (group.chain is not None or bound_s >= self.best_s / (1 + goal)):
                return
            heapq.heappop(self.heap)
            if group.chain is None:
                self.bounded(bound_s, group)
            else:
                self.closed_s = min(self.closed_s, self.tried(bound_s, group.chain))

    def bounded(self, quick_s: float, group: _Group) -> None:
        field = self.fields.get(id(group.cell))
        if field is None:
            field = field_of(self.links, self.instance, group.cell)
            self.fields[id(group.cell)] = field
        chain = chain_of(field, group.depth, _chunks(self.instance, group.depth, self.wanted))
        if not has_room(chain):
            return
        limit_s = min(self.best_s, FIRST_LIMIT * quick_s)
        bound_s = chain_bound(chain, quick_s, limit_s)
        if bound_s >= limit_s and limit_s < self.best_s:
            self.push(limit_s, group)
        else:
            self.push(bound_s, replace(group, chain=chain))

    def tried(self, bound_s: float, chain: Chain) -> float:
        """Looks for layouts of a group; its bound, infinite where all layouts were looked at."""
        self.tries += 1
        every = every_chain(self.instance, chain)
        if every is not None:
            for draft in every:
                self.offer(draft)
            return float("inf")
        m = chain.field.cell.microbatches
        first = sorted(self.first_chains(chain, bound_s), key=lambda d: d.seconds)
        for start in first[:3]:
            found, spent = climbed(chain.field.costs, start, m, BRIEF)
            if found.seconds < PROMISING * self.best_s:
                found, more = climbed(chain.field.costs, found, m, CLIMBED)
                self.offer(draft_of(chain.field, found))
                spent += more
            self.spent += spent
        return bound_s

    def first_chains(self, chain: Chain, bound_s: float) -> Iterator[Dealt]:
        rows = pools_of_stages(chain, most_layers(chain, bound_s, 0.0))
        for order in _orders(rows, chain.field.work):
            for chunks in chain.chunks:
                found = dealt(chain, order, chunks)
                self.spent += 1
                if found is not None and np.isfinite(found.seconds):
                    yield found

    def offer(self, draft: Draft) -> None:
        score = self.instance.evaluate(layout_of(self.instance, draft))
        self.spent += 1
        self.watch.saw(score.step_time_s)
        if score.step_time_s < self.best_s:
            self.best_s, self.best = score.step_time_s, (draft, score)


def _groups(instance: Instance, cell: Cell, wanted: Wanted) -> Iterator[tuple[_Group, float]]:
    """Numbers of stages of a cell, each with a bound from its work and its ramp alone."""
    table, rows, layers = instance.table, cell.rows, instance.num_layers
    units = cell.room[table.pool_index[rows]] // table.num_chips[rows]
    work = work_seconds(instance)[rows]
    each = float(_lightest(instance)[rows].min())
    speed = np.sort(np.repeat(layers / work, units))[::-1]
    for depth in divisors(cell.microbatches):
        if depth < 2 or depth > min(cell.deepest, len(speed)):
            continue
        if (wanted.depths and depth not in wanted.depths) or not _chunks(instance, depth, wanted):
            continue
        quick_s = quick_bound(
            speed[:depth], each * np.arange(float(depth)), cell.microbatches, float(layers)
        )
        yield _Group(cell=cell, depth=depth), quick_s + instance.floor


@lru_cache(maxsize=8)
def _lightest(instance: Instance) -> FloatArray:
    """Seconds of the lightest layer under each option, there and back, (O,)."""
    layers = instance.table.layers
    return np.diff(layers.forward_s + layers.backward_s, axis=1).min(axis=1)


def _chunks(instance: Instance, depth: int, wanted: Wanted) -> tuple[int, ...]:
    every = range(2, instance.num_layers // depth + 1)
    return tuple(v for v in every if not wanted.chunks or v in wanted.chunks)


def _orders(rows: IntArray, work: FloatArray) -> list[IntArray]:
    """Chains of these stages with each pool in one run: all orders of few pools."""
    counts = [(k, int((rows == k).sum())) for k in np.unique(rows).tolist()]
    if len(counts) <= MOST_PERMUTED:
        orders = [list(order) for order in permutations(counts)]
    else:
        quick = sorted(counts, key=lambda pair: float(work[pair[0]]))
        seen = [pair for k in dict.fromkeys(rows.tolist()) for pair in counts if pair[0] == k]
        orders = [quick, quick[::-1], counts, seen]
    return [np.repeat([k for k, _ in order], [n for _, n in order]) for order in orders]


def search_interleaved(
    problem: Problem,
    instance: Instance,
    watch: Watch,
    *,
    best_s: float = float("inf"),
    wanted: Wanted = ANY_CHAIN,
    goal: float = 1e-3,
) -> FamilyResult:
    """The fastest interleaved chain below ``best_s``, and a bound on all of them.

    The bound is at most ``best_s``: what takes longer is not looked at. Ends at a gap of ``goal``,
    with the clock, or when every group was looked at.
    """

    def together(option: StageOption) -> Hashable:
        vendor = problem.cluster.pool(option.pool).chip.vendor
        return vendor if wanted.one_vendor else "", replace(option, pool="")

    state = _Search(
        instance=instance,
        links=links_of(problem, instance.space.pools),
        watch=watch,
        wanted=wanted,
        best_s=best_s,
    )
    state.begin(cells(instance, together))
    state.run(goal)
    left = state.heap[0][0] if state.heap else float("inf")
    draft, score = state.best if state.best else (None, None)
    bound_s = min(left, state.closed_s, state.best_s)
    return FamilyResult(draft=draft, score=score, bound_s=bound_s, evaluations=state.spent)
