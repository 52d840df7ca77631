"""Nodes of the proof: one cell and an interval of the period, with a bound and a chain."""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

import numpy as np

from planner.arrays import FloatArray, IntArray
from planner.families.cells import Cell
from planner.families.costs import BACKWARD, FORWARD, Costs, costs_of
from planner.families.floors import chain_floor
from planner.families.ground import Ground, Limits
from planner.families.links import Links
from planner.families.relax import least_chain
from planner.families.spans import Menus, Spans, layer_kinds, layer_weights, list_spans, menus_of
from planner.families.twins import twins
from planner.instance import Instance

LOG_LINES = 1 << 22
MOST_POOLS = 8
"""Pools of a cell up to which orders of pools are proved over."""

ENOUGH = 0.6
"""Share of the layers that a pool could hold which a first chain does with."""

QUICK_STEPS = 8
DEEP_STEPS = 6
GOLDEN = 0.382

PRICE_STEPS = 14
FIRST_STEP = 0.03
PRICE_TOLERANCE = 2e-5
SLACK = 1e-9
"""Relative allowance for rounding; bounds are lowered by it."""


class Kind(IntEnum):
    """Which chains a node holds, and which stage their bound is taken at.

    WINDOWS: of fewer stages than micro-batches; the window that sets the period. BEHIND: of no
    fewer; their slowest stage, which has fewer than m stages from itself to the end. BEFORE: of no
    fewer, whose slowest stage has at least m.
    """

    WINDOWS = 0
    BEHIND = 1
    BEFORE = 2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Field:
    """A cell with its priced stages.

    menus: the order in which stages are tried. size: summed weights of all layers. longer: of
    every stage the longer of forward and backward is at least this share of both, without overhead.
    """

    cell: Cell
    costs: Costs
    spans: Spans
    menus: Menus
    ground: Ground
    size: float
    longer: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Node:
    """An interval of the period in a cell.

    kind: see ``Kind``. price: of a layer, to begin with. each: of a stage, where there are at
    least as many as micro-batches. period_s: of the chain that has the node's bound, once it is
    known. shortest, longest: stages of its chains. parted: stages of the shorter half of its
    chains, if those of its bound differ in that.
    """

    field: Field
    low: float
    high: float
    kind: Kind
    price: float
    each: float = 0.0
    period_s: float = float("nan")
    shortest: int = 1
    longest: int = 1 << 30
    parted: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Relaxed:
    """Least value of a node, and the chain that has it: stages from the first to the last."""

    bound_s: float
    rows: IntArray
    layers: IntArray
    period_s: float


def field_of(
    links: Links, instance: Instance, cell: Cell, kin: IntArray, limit_s: float
) -> Field | None:
    """The cell priced, with the stages that a step of ``limit_s`` allows; None for many pools."""
    kinds, weights = layers_of(instance)
    costs = costs_of(links, instance, cell)
    pools = np.unique(costs.pool)
    if len(pools) > MOST_POOLS:
        return None
    own = np.searchsorted(pools, costs.pool)
    slots = np.unique(np.stack([own, costs.chips]), axis=1)
    slot_of = np.argmax((slots[0] == own[:, None]) & (slots[1] == costs.chips[:, None]), axis=1)
    spans = list_spans(costs, kinds, weights, slot_of, cell.deepest, limit_s / cell.microbatches)
    ground = Ground(
        pool=np.ascontiguousarray(slots[0]),
        units=np.minimum(cell.room[pools[slots[0]]] // slots[1], cell.deepest),
        hop=_least_hops(costs, slot_of, slots.shape[1]),
        kin=_bits(kin, pools),
        behind=twins(costs, slots[0][slot_of], cell.room[pools], kin[pools]),
    )
    return Field(
        cell=cell,
        costs=costs,
        spans=spans,
        menus=menus_of(spans, slots.shape[1]),
        ground=ground,
        size=float(weights.sum()),
        longer=_longer_share(costs),
    )


@lru_cache(maxsize=8)
def layers_of(instance: Instance) -> tuple[IntArray, FloatArray]:
    """Kinds and weights of the layers."""
    return layer_kinds(instance.table), layer_weights(instance.table)


def _least_hops(costs: Costs, slot_of: IntArray, count: int) -> FloatArray:
    """Least seconds there and back between options of each two slots."""
    least = np.full((count, count), np.inf)
    np.minimum.at(least, (slot_of[:, None], slot_of[None, :]), 2.0 * costs.hop)
    return least


def _longer_share(costs: Costs) -> float:
    """See ``Field.longer``: no sum has a smaller share than its parts, so parts are looked at."""
    layers = np.diff(costs.layers, axis=2)
    parts = [layers[:, :, k] for k in range(layers.shape[2])]
    parts += [costs.first.T, costs.last.T, (costs.last - costs.shared).T]
    forward = np.concatenate([part[FORWARD] for part in parts])
    backward = np.concatenate([part[BACKWARD] for part in parts])
    some = forward + backward > 0.0
    shares = [way[some] / (forward + backward)[some] for way in (forward, backward)]
    return float(max(share.min(initial=1.0) for share in shares))


def _bits(kin: IntArray, pools: IntArray) -> IntArray:
    """For each pool of the cell the others of its kind, as bits of their numbers in the cell."""
    return np.array(
        [
            sum(1 << n for n, other in enumerate(pools) if other != k and kin[other] == kin[k] >= 0)
            for k in pools
        ],
        np.int64,
    )


def least_period(field: Field) -> float:
    """A period below which the stages that the chips allow cannot hold all layers."""
    spans, ground = field.spans, field.ground
    works = np.unique(spans.work)
    low, high = 0, len(works)
    while low < high:
        middle = (low + high) // 2
        if _capacity(spans, ground, float(works[middle])) >= field.size * (1 - SLACK):
            high = middle
        else:
            low = middle + 1
    return float(works[low]) if low < len(works) else float("inf")


def narrowed(field: Field, period_s: float) -> Field:
    """The field with one slot of each pool: the largest stages that hold about as many layers."""
    spans, ground = field.spans, field.ground
    most = _slot_capacity(spans, ground, period_s)
    of_pool = np.zeros(len(ground.kin))
    np.maximum.at(of_pool, ground.pool, most)
    enough = most >= ENOUGH * of_pool[ground.pool]
    order = np.lexsort((np.where(enough, ground.units, np.iinfo(np.int64).max), ground.pool))
    best = np.sort(order[np.unique(ground.pool[order], return_index=True)[1]])
    number = np.full(len(ground.pool), -1, np.int64)
    number[best] = np.arange(len(best))
    kept = number[spans.slot] >= 0
    parts = {name: part[kept] for name, part in spans._asdict().items()}
    parts["slot"] = number[parts["slot"]]
    fewer = Spans(**parts)
    return replace(
        field,
        spans=fewer,
        menus=menus_of(fewer, len(best)),
        ground=ground._replace(
            pool=ground.pool[best],
            units=ground.units[best],
            hop=np.ascontiguousarray(ground.hop[best][:, best]),
        ),
    )


def first_price(field: Field, period_s: float) -> float:
    """About what a mean layer costs: twice its work where the chips just hold all layers."""
    stages = np.zeros(len(field.ground.kin))
    np.maximum.at(stages, field.ground.pool, np.minimum(field.ground.units, field.cell.deepest))
    return 2.0 * period_s * min(float(stages.sum()), field.cell.deepest) / field.size


def _capacity(spans: Spans, ground: Ground, period_s: float) -> float:
    of_pool = np.zeros(len(ground.kin))
    np.maximum.at(of_pool, ground.pool, _slot_capacity(spans, ground, period_s))
    return float(of_pool.sum())


def _slot_capacity(spans: Spans, ground: Ground, period_s: float) -> FloatArray:
    """Weight of the layers that all stages of a slot hold at most, (S,)."""
    within = spans.work <= period_s
    most = np.zeros(len(ground.pool))
    np.maximum.at(most, spans.slot[within], spans.size[within])
    return most * ground.units


def relaxed(node: Node, goal_s: float, log: IntArray) -> tuple[list[Relaxed], float]:
    """What a node gives at prices of layers, the best bound first, and the price of that.

    ``base(low) + price x size + least chain(price)`` is concave in the price; the size of the least
    chain is its slope. Ends early where no chain below ``goal_s`` is left.
    """
    below: Line | None = None
    above: Line | None = None
    tried: list[tuple[Relaxed, float]] = []
    price, field = node.price, node.field
    tolerance = max(PRICE_TOLERANCE, 0.05 * (node.high / node.low - 1))
    for step in range(PRICE_STEPS):
        found, slope = at_price(node, price, goal_s, log)
        tried.append((found, price))
        best = max(each.bound_s for each, _ in tried)
        if found.bound_s >= goal_s or abs(slope) < 1e-9 * field.size:
            break
        line = (price, found.bound_s, slope)
        if slope > 0:
            below = line
        else:
            above = line
        price, promise = _next_price(below, above, price, 1.0 + FIRST_STEP * 2.0**step)
        if promise < best * (1 + tolerance):
            break
    tried.sort(key=lambda pair: -pair[0].bound_s)
    return [found for found, _ in tried], tried[0][1]


Line = tuple[float, float, float]


def _next_price(
    below: Line | None, above: Line | None, price: float, further: float
) -> tuple[float, float]:
    """Where the lines of both sides meet, and their value there; further out while one is known.

    Far out chains are many, so steps are small at first.
    """
    if above is None:
        return price * further, np.inf
    if below is None:
        return price / further, np.inf
    at = (above[1] - below[1] + below[2] * below[0] - above[2] * above[0]) / (below[2] - above[2])
    return at, below[1] + below[2] * (at - below[0])


def _limits(node: Node, price: float, goal_s: float) -> tuple[float, Limits]:
    """What the value of a chain is added to, and the kernel's view of the node."""
    field, cell, m = node.field, node.field.cell, node.field.cell.microbatches
    windows, before = node.kind == Kind.WINDOWS, node.kind == Kind.BEFORE
    shown = field.longer * (node.low - field.costs.overhead[1]) if before else node.low
    least = max(node.shortest, 1 if windows else m)
    base = (m - 1) * shown + price * field.size + field.costs.overhead[0]
    base += 0.0 if windows else node.each * least
    limits = Limits(
        low=node.low * (1 - SLACK),
        high=node.high * (1 + SLACK),
        price=price,
        goal=goal_s - base,
        microbatches=m,
        least=least,
        deepest=min(cell.deepest, node.longest, m - 1 if windows else cell.deepest),
        windows=windows,
        pace_from=m if before else 1,
        pace_to=cell.deepest if before else m - 1,
        weight=1.0 if before else 2.0,
        credit=0.0 if before else node.low,
        each=0.0 if windows else node.each,
    )
    return base, limits


def quick_bound(node: Node) -> tuple[float, Node]:
    """A bound of the node that looks at its pools one by one, and the node at the best prices."""
    best, found = -np.inf, node
    steps = 1 if node.kind == Kind.WINDOWS else DEEP_STEPS
    for each in node.high * np.linspace(0.0, 1.0, steps):
        value, price = _quick_price(replace(node, each=float(each)))
        if value > best:
            best, found = value, replace(node, price=price, each=float(each))
    return best * (1 - SLACK), found


def _quick_price(node: Node) -> tuple[float, float]:
    best, price = -np.inf, node.price
    low, high = 0.25 * node.price, 8.0 * node.price
    for _ in range(QUICK_STEPS):
        a, b = low + GOLDEN * (high - low), high - GOLDEN * (high - low)
        values = [_quick_at(node, at) for at in (a, b)]
        if max(values) > best:
            best, price = max(values), (a, b)[int(values[1] > values[0])]
        low, high = (a, high) if values[1] > values[0] else (low, b)
    return best, price


def _quick_at(node: Node, price: float) -> float:
    base, limits = _limits(node, price, np.inf)
    return base + chain_floor(node.field.spans, node.field.menus, node.field.ground, limits)


def at_price(node: Node, price: float, goal_s: float, log: IntArray) -> tuple[Relaxed, float]:
    """The bound of a node at a price, its chain, and by how much that misses the layers' weight.

    No chain, and an infinite bound, when none is below ``goal_s``.
    """
    field = node.field
    log[0, 0] = 0
    base, limits = _limits(node, price, goal_s)
    value, entry = least_chain(field.spans, field.menus, field.ground, limits, log)
    if value == np.inf:
        return _unlike(float("inf")), 0.0
    bound = float(base + value) * (1 - SLACK)
    if entry == 0:
        return _unlike(bound), 0.0
    stages: list[int] = []
    while entry:
        stages.append(int(log[entry, 1]))
        entry = int(log[entry, 0])
    chosen = np.array(stages, np.int64)
    rows = field.spans.row[chosen]
    longest = float(field.spans.work[chosen].max())
    found = Relaxed(
        bound_s=bound,
        rows=rows,
        layers=field.spans.layers[chosen],
        period_s=_period(field, chosen) if node.kind == Kind.WINDOWS else longest,
    )
    return found, field.size - float(field.spans.size[chosen].sum())


def _unlike(bound_s: float) -> Relaxed:
    """A bound without a chain."""
    none = np.zeros(0, np.int64)
    return Relaxed(bound_s=bound_s, rows=none, layers=none, period_s=0.0)


def _period(field: Field, chosen: IntArray) -> float:
    """Largest mean of a window of stages with the hand-overs inside it."""
    work, own = field.spans.work[chosen], field.spans.slot[chosen]
    hops = field.ground.hop[own[:-1], own[1:]]
    ends = np.concatenate(([0.0], np.cumsum(work)))
    steps = np.concatenate(([0.0], np.cumsum(hops)))
    i, e = np.triu_indices(len(chosen))
    return float(((ends[e + 1] - ends[i] + steps[e] - steps[i]) / (e - i + 1)).max())
