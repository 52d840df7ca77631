"""Best-first branch and bound over cells and periods: layouts from below, a bound from above."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace
from dataclasses import field as member
from itertools import count

import numpy as np

from planner.arrays import IntArray
from planner.degrees import options_replicas
from planner.families.cells import Cell
from planner.families.deal import settled
from planner.families.links import Links
from planner.families.nodes import (
    LOG_LINES,
    Field,
    Node,
    field_of,
    first_price,
    least_period,
    narrowed,
    quick_bound,
    relaxed,
)
from planner.instance import Draft, Instance, Score, layout_of
from planner.watch import Watch

NARROW = 5e-5
"""Relative width of a period's interval from which it is not split."""

WIDTHS = (1.2, 1.4, 1.8, 3.0, 10.0)
"""Step times below which first layouts are looked for, over what is likely."""

WIDE = 1.05
"""Ratio of an interval's ends from which it is split without a closer look."""

MOST_NARROW = 120
MOST_LOOKS = 100_000
"""Nodes that are looked at with one slot a pool, to find layouts, and with all, to prove."""

MOST_AFTER = 150
"""Nodes that are looked at for better layouts once the bound cannot rise any more."""

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
    spent: int = 0
    looked: int = 0
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
            if not self._single(found):
                return True
            low = least_period(found)
        high = min(self.best_s / cell.microbatches, float(found.spans.work.max(initial=0.0)))
        if low > high:
            return True
        bound_s = max(bound_s, self.instance.floor + cell.microbatches * low)
        price = first_price(found, low)
        for steady in (True, False):
            if cell.microbatches > 1 if steady else cell.deepest >= cell.microbatches:
                self.push(
                    bound_s, Node(field=found, low=low, high=high, steady=steady, price=price)
                )
        return True

    def _single(self, field: Field) -> bool:
        """Whether some stage has no replicas; else more copies give the same layouts."""
        rows = field.cell.rows[np.unique(field.spans.row)]
        options = self.instance.table.options
        return any(options_replicas(options[int(row)]) == 1 for row in rows)

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
        if not self._single(found):
            return None
        low = high / WIDE
        return Node(field=found, low=low, high=high, steady=True, price=first_price(found, low))

    def evaluate(self, bound_s: float, node: Node, goal_s: float) -> None:
        """Bounds a node and tries the chain that its bound has."""
        tried, price = relaxed(node, goal_s, self.log)
        self.looked += 1
        modes = self.modes[:, node.field.cell.rows]
        for found in tried if tried[0].bound_s < self.best_s else ():
            dealt = settled(node.field, found, modes, self.best_s)
            if dealt is not None:
                self.spent += dealt[2]
                self.offer(dealt[1])
        bound_s = max(bound_s, tried[0].bound_s)
        self.push(bound_s, replace(node, price=price, period_s=tried[0].period_s))

    def visit(self, bound_s: float, node: Node) -> bool:
        """Bounds or splits a node; False when it can neither be bounded better nor split."""
        if np.isnan(node.period_s):
            quick_s, price = quick_bound(node)
            self.push(max(bound_s, quick_s), replace(node, price=price, period_s=0.0))
        elif node.period_s > 0.0 or node.high > WIDE * node.low:
            return self.split(bound_s, node)
        else:
            self.evaluate(bound_s, node, self.best_s)
        return True

    def split(self, bound_s: float, node: Node) -> bool:
        """Puts both halves of a node on the heap; False when it is too narrow."""
        if node.high - node.low <= NARROW * node.low:
            return False
        at = node.period_s
        if not node.low * (1 + 0.3 * NARROW) < at <= node.high:
            at = 0.5 * (node.low + node.high)
        at, nan = at * (1 - 1e-12), float("nan")
        self.push(bound_s, replace(node, low=at, period_s=nan))
        self.push(bound_s, replace(node, high=at, period_s=nan))
        return True

    def explore(self, cells_found: list[Cell], goal: float, most: int, *, narrow: bool) -> float:
        """Best first until a gap of ``goal``, the clock or ``most`` looks.

        The bound reached; nodes that are too narrow to split leave theirs.
        """
        self.heap.clear()
        for cell in cells_found:
            self.push(cell.quick_s, cell)
        closed_s, last = float("inf"), self.looked + most
        while self.heap and not self.watch.expired() and self.looked < last:
            bound_s, _, item = self.heap[0]
            if bound_s >= self.best_s * (1 - goal):
                break
            heapq.heappop(self.heap)
            if isinstance(item, Cell):
                if not self.open_cell(bound_s, item, narrow=narrow):
                    closed_s = min(closed_s, bound_s)
            elif not self.visit(bound_s, item):
                closed_s, last = min(closed_s, bound_s), min(last, self.looked + MOST_AFTER)
        left = self.heap[0][0] if self.heap else float("inf")
        return min(left, closed_s, self.best_s)

    def offer(self, draft: Draft) -> None:
        """Scores a layout exactly; the fastest is kept."""
        if draft in self.seen:
            return
        self.seen.add(draft)
        score = self.instance.evaluate(layout_of(self.instance, draft))
        self.spent += 1
        self.watch.saw(score.step_time_s)
        if score.step_time_s < self.best_s:
            self.best_s, self.best = score.step_time_s, (draft, score)


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
        state.explore(ordered, goal, MOST_NARROW, narrow=True)
    bound_s = state.explore(ordered, goal, MOST_LOOKS, narrow=False)
    draft, score = state.best if state.best else (None, None)
    return FamilyResult(draft=draft, score=score, bound_s=bound_s, evaluations=state.spent)


def _modes(instance: Instance) -> IntArray:
    """Equal numbers for options that differ in recompute and ZeRO only, and that ZeRO stage."""
    known: dict[object, int] = {}
    keys = [replace(o, zero=0, recompute="none") for o in instance.table.options]
    zero = [o.zero for o in instance.table.options]
    return np.array([[known.setdefault(key, len(known)) for key in keys], zero], np.int64)
