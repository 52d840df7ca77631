"""Every distinct stage that a cell's options can run: what a relaxation chooses from.

Stages that hold equally many layers of every kind cost the same wherever they lie, so one of them
stands for all; first and last ones hold the ends as well.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from costmodel.stage.table import StageTable
from planner.arrays import FloatArray, IntArray
from planner.families.costs import Costs
from planner.families.score import after_s, most_in_flight, work_s

INNER, LAST, FIRST, BOTH = range(4)
"""Place of a stage: 2 x (holds the first layer) + (holds the last one)."""


class Spans(NamedTuple):
    """Distinct stages, shape (W,); a NamedTuple because compiled functions take it.

    work: F + B of one micro-batch. size: sum of its layers' weights. most: micro-batches that fit.
    after: seconds after the last backward. slot: index of pool and chips. place: see above.
    row, layers: an option and a number of layers of which the stage is made.
    """

    work: FloatArray
    size: FloatArray
    most: IntArray
    after: FloatArray
    slot: IntArray
    place: IntArray
    row: IntArray
    layers: IntArray


class Menus(NamedTuple):
    """Stages by slot and place, quickest first; a NamedTuple because compiled functions take it.

    plain: stages that no other beats; every: all. plain_at, every_at: where those of a slot and
    place begin and end, (S, 4, 2).
    """

    plain: IntArray
    plain_at: IntArray
    every: IntArray
    every_at: IntArray


def menus_of(spans: Spans, slots: int) -> Menus:
    """The stages of so many slots in the order in which they are tried."""
    every = np.lexsort((spans.work, spans.place, spans.slot))
    plain = every[np.isin(every, useful(spans))]
    groups = np.arange(4 * slots)
    both: list[IntArray] = []
    for chosen in (plain, every):
        group = 4 * spans.slot[chosen] + spans.place[chosen]
        ends = [np.searchsorted(group, groups, side=side) for side in ("left", "right")]
        both += [chosen, np.stack(ends, axis=1).reshape(slots, 4, 2)]
    return Menus(*both)


@nb.njit(cache=True, nogil=True)
def _beats(spans: Spans, q: int, s: int) -> bool:
    """Whether stage q is as good as stage s in everything."""
    return bool(
        spans.slot[q] == spans.slot[s]
        and spans.place[q] == spans.place[s]
        and spans.work[q] <= spans.work[s]
        and spans.size[q] >= spans.size[s]
        and spans.most[q] >= spans.most[s]
        and spans.after[q] <= spans.after[s]
    )


@nb.njit(cache=True, nogil=True)
def useful(spans: Spans) -> IntArray:
    """Stages that no other beats, quickest first."""
    count = len(spans.work)
    kept, before = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    groups = 4 * (spans.slot.max() + 1) if count else 0
    last = np.full(groups, -1, np.int64)
    found = 0
    for s in np.argsort(spans.work):
        group = 4 * spans.slot[s] + spans.place[s]
        q = int(last[group])
        while q >= 0 and not _beats(spans, q, s):
            q = int(before[q])
        if q < 0:
            before[s], last[group] = last[group], s
            kept[found] = s
            found += 1
    return kept[:found]


def layer_weights(table: StageTable) -> FloatArray:
    """Work of each layer over the mean layer's, averaged over options, (L,)."""
    work = np.diff(table.layers.forward_s + table.layers.backward_s, axis=1)
    each = work / work.mean(axis=1, keepdims=True)
    return np.ascontiguousarray(each.mean(axis=0))


def layer_kinds(table: StageTable) -> IntArray:
    """Equal numbers for layers that cost the same under every option, (L,)."""
    terms = table.layers
    sums = (
        terms.forward_s,
        terms.backward_s,
        terms.dense_parameters,
        terms.expert_parameters,
        terms.activation_bytes,
    )
    columns = [*(np.diff(part, axis=1) for part in sums), table.transient_bytes]
    known: dict[bytes, int] = {}
    keys = _rounded(np.concatenate(columns))
    return np.array([known.setdefault(key, len(known)) for key in keys], np.int64)


def _rounded(lines: FloatArray) -> list[bytes]:
    """Each column to seven digits of its line's largest number."""
    scale = np.maximum(np.abs(lines).max(axis=1, keepdims=True), 1e-300)
    shares = lines / scale
    return [shares[:, k].round(7).tobytes() for k in range(lines.shape[1])]


@nb.njit(cache=True, nogil=True)
def _repeats(kinds: IntArray, a: int, b: int) -> bool:
    """Whether an inner stage [a, b) costs what the one a layer before costs."""
    return a > 1 and kinds[a - 1] == kinds[b - 1]


@nb.njit(cache=True, nogil=True)
def list_spans(
    x: Costs, kinds: IntArray, weights: FloatArray, slot_of: IntArray, deepest: int, limit_s: float
) -> Spans:
    """All distinct stages that take at most ``limit_s`` and fit with one micro-batch in flight."""
    R, L = x.layers.shape[1], x.layers.shape[2] - 1
    sums = np.zeros(L + 1)
    for layer in range(L):
        sums[layer + 1] = sums[layer] + weights[layer]
    found = 0
    numbers, labels = np.zeros((3, 64)), np.zeros((5, 64), np.int64)
    for r in range(R):
        for a in range(L):
            for b in range(a + 1, L + 1):
                if a > 0 and b < L and _repeats(kinds, a, b):
                    continue
                work = work_s(x, r, a, b)
                if work > limit_s:
                    break
                most = most_in_flight(x, r, a, b) * (1 + 1e-9)
                if most < 1.0:
                    continue
                if found == numbers.shape[1]:
                    numbers = np.concatenate((numbers, np.zeros((3, found))), axis=1)
                    labels = np.concatenate((labels, np.zeros((5, found), np.int64)), axis=1)
                place = (2 if a == 0 else 0) + (1 if b == L else 0)
                numbers[0, found], numbers[1, found] = work, sums[b] - sums[a]
                numbers[2, found] = after_s(x, r, a, b)
                labels[0, found] = int(min(most, deepest))
                labels[1, found], labels[2, found] = slot_of[r], place
                labels[3, found], labels[4, found] = r, b - a
                found += 1
    return Spans(
        numbers[0, :found].copy(),
        numbers[1, :found].copy(),
        labels[0, :found].copy(),
        numbers[2, :found].copy(),
        labels[1, :found].copy(),
        labels[2, :found].copy(),
        labels[3, :found].copy(),
        labels[4, :found].copy(),
    )
