"""Cells of a family's space: one set of options, one number of copies, one number of micro-batches.

All copies of the pipeline are alike, so a cell knows exactly how many micro-batches run, over how
many chips state is sharded, and how many chips of each pool one copy may use.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from costmodel.layout.rule_tools import divisors
from costmodel.layout.values import StageOption
from planner.arrays import FloatArray, IntArray
from planner.instance import Draft, Instance, arrays

LARGEST_ZERO = 1
"""ZeRO stages beyond move gradients or weights with every micro-batch; no family here has them."""

GroupOf = Callable[[StageOption], Hashable]
"""What options have to have in common to meet in one layout; None for those left out."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cell:
    """Options that may meet in a pipeline, and the numbers that all its copies share.

    rows: table rows, ascending. samples: sequences per micro-batch. room: chips of each pool that
    one copy may use, shape (pools,). deepest: most stages. quick_s: no layout of the cell takes
    less: ``micro-batches x layers / summed speeds of the stages that the chips make``. likely_s: a
    guess at its best step, to begin with.
    """

    rows: IntArray
    copies: int
    samples: int
    microbatches: int
    room: IntArray
    deepest: int
    quick_s: float
    likely_s: float


def cells(instance: Instance, group_of: GroupOf) -> Iterator[Cell]:
    """Every cell: groups of options times the numbers of copies that divide the batch.

    ``copies x micro-batches x samples = batch`` and one copy uses at most ``chips // copies`` of
    each pool.
    """
    for rows in groups(instance, group_of):
        samples = int(instance.table.samples[rows[0]])
        total, rest = divmod(instance.batch, samples)
        again = bool((doubled(instance)[rows] >= 0).all())
        for copies in () if rest else divisors(total):
            cell = None
            if copies % 2 or not again:
                cell = _cell(instance, rows, copies, total // copies)
            if cell is not None:
                yield cell


@lru_cache(maxsize=8)
def doubled(instance: Instance) -> IntArray:
    """Row of the option with twice the replicas; -1 if there is none, (O,).

    Half the copies with twice the replicas on all stages are the same layout, unless the replicas
    make up a group of experts.
    """
    rows = {option: row for row, option in enumerate(instance.table.options)}
    twice = [replace(o, replicas=2 * o.replicas) if o.ep == 1 else None for o in rows]
    return np.array([rows.get(option, -1) if option else -1 for option in twice], np.int64)


@lru_cache(maxsize=8)
def halved(instance: Instance) -> IntArray:
    """Row of the option with half the replicas; -1 if there is none, (O,)."""
    found, twice = np.full(len(instance.table.options), -1, np.int64), doubled(instance)
    found[twice[twice >= 0]] = np.flatnonzero(twice >= 0)
    return found


def halved_draft(instance: Instance, draft: Draft) -> Draft:
    """The same layout with as many copies and as few replicas as there can be."""
    (entry,) = draft
    halves = halved(instance)[list(entry.template.rows)]
    if (halves < 0).any():
        return draft
    template = replace(entry.template, rows=tuple(halves.tolist()))
    return halved_draft(instance, (replace(entry, template=template, count=2 * entry.count),))


def groups(instance: Instance, group_of: GroupOf) -> list[IntArray]:
    """Rows of the options that may meet; those beyond ``LARGEST_ZERO`` are left out.

    So are those that give the layouts of another group, which has more options, in fewer copies.
    """
    found: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row, option in enumerate(instance.table.options):
        if option.zero <= LARGEST_ZERO and group_of(option) is not None:
            found[option.samples, group_of(option)].append(row)
    every = [np.array(rows, np.int64) for rows in found.values()]
    group_of_row = {row: group for group in every for row in group.tolist()}
    return [rows for rows in every if not _elsewhere(instance, rows, group_of_row)]


def _elsewhere(instance: Instance, rows: IntArray, group_of_row: Mapping[int, IntArray]) -> bool:
    """Whether a group with half the replicas has all layouts of this one, and others."""
    halves = halved(instance)[rows]
    if (halves < 0).any():
        return False
    other = group_of_row.get(int(halves[0]))
    return other is not None and bool((doubled(instance)[other] < 0).any())


def _cell(instance: Instance, rows: IntArray, copies: int, microbatches: int) -> Cell | None:
    """The cell of these numbers; None when one copy has no chips for a stage or no room."""
    table, layers = instance.table, instance.num_layers
    room = np.array(instance.chips, np.int64) // copies
    units = room[table.pool_index[rows]] // table.num_chips[rows]
    usable, units = rows[units > 0], units[units > 0]
    if len(usable) == 0:
        return None
    pools, work = table.pool_index[usable], work_seconds(instance)[usable]
    deepest = int(min(instance.space.max_stages, layers, _by_pool(pools, units).sum()))
    if _most(pools, units, _most_layers(instance, usable, copies, 1.0), deepest) < layers:
        return None
    quick_s = microbatches / _most(pools, units, 1.0 / work, deepest)
    held = _most_layers(instance, usable, copies, 0.5 * min(deepest, microbatches))
    tight = layers / max(1.0, _most(pools, units, held, deepest))
    return Cell(
        rows=usable,
        copies=copies,
        samples=int(table.samples[rows[0]]),
        microbatches=microbatches,
        room=room,
        deepest=deepest,
        quick_s=quick_s + instance.floor,
        likely_s=quick_s * (1.0 + 0.5 * deepest / microbatches) * max(1.0, tight) ** 2,
    )


@lru_cache(maxsize=8)
def work_seconds(instance: Instance) -> FloatArray:
    """F + B of all layers under each option."""
    layers = instance.table.layers
    return (layers.forward_s + layers.backward_s)[:, -1]


def _by_pool(pools: IntArray, values: FloatArray | IntArray) -> FloatArray:
    """Largest value of each pool."""
    most = np.zeros(int(pools.max()) + 1)
    np.maximum.at(most, pools, values)
    return most


def _most(pools: IntArray, units: IntArray, each: FloatArray, stages: int) -> float:
    """No chain of so many stages has more: those with most come first, as far as pools allow."""
    best, total = _by_pool(pools, each), _by_pool(pools, units * each)
    found, left = 0.0, float(stages)
    for k in np.argsort(-best):
        if left <= 0 or best[k] <= 0:
            break
        found += float(min(left * best[k], total[k]))
        left -= float(total[k] / best[k])
    return max(found, 1e-300)


def _most_layers(instance: Instance, rows: IntArray, copies: int, in_flight: float) -> FloatArray:
    """Layers that a stage has room for at most, were all as small as the smallest."""
    x, small = arrays(instance, copies), _smallest(instance)
    each = small[0, rows] * x.dense_bytes[rows] + small[1, rows] * x.expert_bytes[rows]
    each = each + in_flight * small[2, rows]
    room = np.maximum(0.0, x.budget[rows] - small[3, rows]) * (1 + 1e-9)
    return np.minimum(instance.num_layers, np.floor(room / np.maximum(each, 1e-300)))


@lru_cache(maxsize=8)
def _smallest(instance: Instance) -> FloatArray:
    """Least dense and expert parameters, kept and short-lived bytes of a layer, (4, O)."""
    layers = instance.table.layers
    sums = (layers.dense_parameters, layers.expert_parameters, layers.activation_bytes)
    least = [np.diff(part, axis=1).min(axis=1) for part in sums]
    return np.stack([*least, instance.table.transient_bytes.min(axis=1)])
