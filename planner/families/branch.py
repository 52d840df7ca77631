"""Best-first branch and bound over cells and periods: layouts from below, a bound from above."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace
from dataclasses import field as member
from itertools import count, groupby

import numpy as np

from planner.arrays import IntArray
from planner.families.cells import Cell, halved_draft
from planner.families.deal import Settled, even_chain, settled
from planner.families.links import Links
from planner.families.nodes import (
    LOG_LINES,
    Field,
    Kind,
    Node,
    field_of,
    first_price,
    least_period,
    narrowed,
    quick_bound,
    relaxed,
)
from planner.families.vary import blocks_of, rows_of, varied
from planner.instance import Draft, Instance, Score, layout_of
from planner.watch import Watch

NARROW = 5e-5
"""Relative width of a period's interval from which it is not split."""

WIDTHS = (1.2, 1.4, 1.8, 3.0, 10.0)
"""Step times below which first layouts are looked for, over what is likely."""

WIDE = 1.05
"""Ratio of an interval's ends from which it is split without a closer look."""

STEPS = (0.03, 0.0099, 0.005, 0.002)
"""Gaps that are proved one after the other."""

MOST_NARROW = 30
MOST_LOOKS = 100_000
"""Nodes that are looked at with one slot a pool, to find layouts, and with all, to prove."""

MOST_AFTER = 150
"""Nodes that are looked at for better layouts once the bound cannot rise any more."""

NEAR_VARIED = 1.15
"""The same as ``deal.NEAR`` for chains whose layers are dealt roughly."""

FIRST = 6
"""Cells that are tried before the proof begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyResult:
    """What a search of a family gives.

    draft, score: the fastest layout found, None if none fits. bound_s: no layout of the family is
    faster. evaluations: layouts scored.
    """

    draft: Draft | None
    score: Score | None
    bound_s: float
    evaluations: int


@dataclass(slots=True, eq=False, kw_only=True)
class _Search:
    """State of a search: open nodes by bound, and the best layout so far."""

    instance: Instance
    links: Links
    watch: Watch
    kin: IntArray
    modes: IntArray
    log: IntArray
    heap: list[tuple[float, int, Cell | Node]]
    numbers: "count[int]"
    best_s: float = float("inf")
    best: tuple[Draft, Score] | None = None
    chain: tuple[Field, IntArray] | None = None
    spent: int = 0
    looked: int = 0
    closed_s: float = float("inf")
    seen: set[Draft] = member(default_factory=set[Draft])

    def push(self, bound_s: float, item: Cell | Node) -> None:
        if bound_s < self.best_s:
            heapq.heappush(self.heap, (bound_s, next(self.numbers), item))

    def open_cell(self, bound_s: float, cell: Cell, *, narrow: bool) -> bool:
        """Puts the cell's nodes on the heap; whether it could be priced.

        narrow: with one slot a pool only, which proves nothing.
        """
        found = field_of(self.links, self.instance, cell, self.kin, self.best_s)
        if found is None:
            return False
        low = least_period(found)
        if narrow and low < float("inf"):
            found = narrowed(found, 1.15 * low)
            low = least_period(found)
        high = min(self.best_s / cell.microbatches, float(found.spans.work.max(initial=0.0)))
        if low > high:
            return True
        bound_s = max(bound_s, self.instance.floor + cell.microbatches * low)
        price = first_price(found, low)
        deep = cell.deepest >= cell.microbatches
        for kind in (Kind.WINDOWS,) if narrow or not deep else Kind:
            if cell.microbatches > 1 or kind == Kind.BEFORE:
                self.push(bound_s, Node(field=found, low=low, high=high, kind=kind, price=price))
        return True

    def start(self, likely: list[Cell]) -> None:
        """Looks for first layouts: short periods in one cell after the other."""
        for width in WIDTHS:
            for tried, cell in enumerate(likely):
                if self.watch.expired() or (self.best is not None and tried >= FIRST):
                    return
                goal_s = min(self.best_s, width * cell.likely_s)
                node = self._first_node(cell, goal_s)
                if node is not None:
                    self.evaluate(0.0, node, goal_s)
                    self.heap.clear()

    def _first_node(self, cell: Cell, goal_s: float) -> Node | None:
        if cell.microbatches == 1:
            return None
        found = field_of(self.links, self.instance, cell, self.kin, goal_s)
        low = least_period(found) if found else float("inf")
        if found is None or low * cell.microbatches >= goal_s:
            return None
        high = min(1.15 * low, goal_s / cell.microbatches)
        found = narrowed(found, high)
        low = high / WIDE
        return Node(
            field=found, low=low, high=high, kind=Kind.WINDOWS, price=first_price(found, low)
        )

    def evaluate(self, bound_s: float, node: Node, goal_s: float) -> None:
        """Bounds a node and tries the chain that its bound has.

        goal_s: bounds above are of no interest; a node that reaches it is looked at again when more
        is asked.
        """
        tried, price = relaxed(node, goal_s, self.log)
        self.looked += 1
        modes = self.modes[:, node.field.cell.rows]
        for found in tried if tried[0].bound_s < self.best_s else ():
            self.take(node.field, settled(node.field, found, modes, self.best_s))
        bound_s = max(bound_s, min(tried[0].bound_s, goal_s))
        lengths = [len(found.rows) for found in tried if len(found.rows)]
        parted = sum((min(lengths), max(lengths))) // 2 if lengths else 0
        parted = parted if lengths and min(lengths) < max(lengths) else 0
        self.push(bound_s, replace(node, price=price, period_s=tried[0].period_s, parted=parted))

    def take(self, field: Field, found: Settled | None) -> bool:
        """Offers a chain, if there is one; whether it is the best so far."""
        if found is None:
            return False
        self.spent += found.spent
        if not self.offer(halved_draft(self.instance, found.draft)):
            return False
        self.chain = field, found.rows
        return True

    def vary(self) -> None:
        """Changes one run of stages of the best chain after the other, while that helps."""
        while self.chain is not None and not self.watch.expired():
            field, rows = self.chain
            modes = self.modes[:, field.cell.rows]
            others = varied(field, blocks_of(field, rows), modes[0], self.in_order)
            chains = (even_chain(field, rows_of(blocks)) for blocks in others)
            tried = (settled(field, one, modes, self.best_s, NEAR_VARIED) for one in chains)
            if not any(self.take(field, found) for found in tried):
                return

    def in_order(self, pools: list[int]) -> bool:
        """Whether pools of one kind are neighbours."""
        kinds = [
            kind for kind, _ in groupby(self.kin[k] if self.kin[k] >= 0 else -1 - k for k in pools)
        ]
        return len(kinds) == len(set(kinds))

    def visit(self, bound_s: float, node: Node, goal_s: float) -> bool:
        """Bounds or splits a node; False when it can neither be bounded better nor split."""
        if np.isnan(node.period_s):
            quick_s, priced = quick_bound(node)
            self.push(max(bound_s, quick_s), replace(priced, period_s=0.0))
        elif node.period_s > 0.0 or node.high > WIDE * node.low:
            return self.split(bound_s, node)
        else:
            self.evaluate(bound_s, node, goal_s)
        return True

    def split(self, bound_s: float, node: Node) -> bool:
        """Puts both halves of a node on the heap; False when it is too narrow."""
        if node.high - node.low <= NARROW * node.low:
            return self.part(bound_s, node)
        at = node.period_s
        if not node.low * (1 + 0.3 * NARROW) < at <= node.high:
            at = 0.5 * (node.low + node.high)
        at, nan = at * (1 - 1e-12), float("nan")
        self.push(bound_s, replace(node, low=at, period_s=nan))
        self.push(bound_s, replace(node, high=at, period_s=nan))
        return True

    def part(self, bound_s: float, node: Node) -> bool:
        """Puts shorter and longer chains on the heap; False when those found are equally long."""
        if node.parted == 0:
            return False
        again = replace(node, period_s=0.0, parted=0)
        self.push(bound_s, replace(again, longest=node.parted))
        self.push(bound_s, replace(again, shortest=node.parted + 1))
        return True

    def begin(self, cells_found: list[Cell]) -> None:
        """Puts all cells on the heap."""
        self.heap.clear()
        for cell in cells_found:
            self.push(cell.quick_s, cell)

    def explore(self, goal: float, most: int, *, narrow: bool) -> None:
        """Best first until a gap of ``goal``, the clock or ``most`` looks.

        Nodes that are too narrow to split leave their bound in ``closed_s``.
        """
        last = self.looked + most
        while self.heap and not self.watch.expired() and self.looked < last:
            bound_s, _, item = self.heap[0]
            goal_s = self.best_s / (1 + goal)
            if bound_s >= goal_s:
                break
            heapq.heappop(self.heap)
            if isinstance(item, Cell):
                if not self.open_cell(bound_s, item, narrow=narrow):
                    self.closed_s = min(self.closed_s, bound_s)
            elif not self.visit(bound_s, item, goal_s):
                self.closed_s, last = (
                    min(self.closed_s, bound_s),
                    min(last, self.looked + MOST_AFTER),
                )

    def bound_s(self) -> float:
        """Below which no layout is, as far as the proof went."""
        left = self.heap[0][0] if self.heap else float("inf")
        return min(left, self.closed_s, self.best_s)

    def offer(self, draft: Draft) -> bool:
        """Scores a layout exactly; the fastest is kept. Whether it is this one."""
        if draft in self.seen:
            return False
        self.seen.add(draft)
        score = self.instance.evaluate(layout_of(self.instance, draft))
        self.spent += 1
        self.watch.saw(score.step_time_s)
        if score.step_time_s >= self.best_s:
            return False
        self.best_s, self.best = score.step_time_s, (draft, score)
        return True


def branch_and_bound(
    instance: Instance,
    links: Links,
    found: Iterable[Cell],
    kin: IntArray,
    watch: Watch,
    goal: float,
) -> FamilyResult:
    """The fastest layout of these cells and a bound on all of them.

    kin: pools of equal number, if not negative, have to be neighbours in the chain. Ends at a gap
    of ``goal``, with the clock, or when nothing is left that can be split.
    """
    state = _Search(
        instance=instance,
        links=links,
        watch=watch,
        kin=kin,
        modes=_modes(instance),
        log=np.zeros((LOG_LINES, 2), np.int64),
        heap=[],
        numbers=count(),
    )
    ordered = sorted(found, key=lambda cell: cell.quick_s)
    state.start(sorted(ordered, key=lambda cell: cell.likely_s))
    if any(len(np.unique(instance.table.pool_index[c.rows])) < len(c.rows) for c in ordered):
        state.begin(ordered)
        state.explore(goal, MOST_NARROW, narrow=True)
    state.vary()
    state.closed_s = float("inf")
    state.begin(ordered)
    for step in (*(step for step in STEPS if step > goal), goal):
        state.explore(step, MOST_LOOKS, narrow=False)
    bound_s = state.bound_s()
    draft, score = state.best if state.best else (None, None)
    return FamilyResult(draft=draft, score=score, bound_s=bound_s, evaluations=state.spent)


def _modes(instance: Instance) -> IntArray:
    """Equal numbers for options that differ in recompute and ZeRO only, and that ZeRO stage."""
    known: dict[object, int] = {}
    keys = [replace(o, zero=0, recompute="none") for o in instance.table.options]
    zero = [o.zero for o in instance.table.options]
    return np.array([[known.setdefault(key, len(known)) for key in keys], zero], np.int64)
