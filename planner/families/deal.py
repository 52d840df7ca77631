"""From a relaxed chain to a layout: layers that are too many or missing, then hill climbing."""

from dataclasses import dataclass

import numpy as np

from planner.arrays import FloatArray, IntArray
from planner.families.climb import climb, options_for
from planner.families.costs import BACKWARD, FORWARD
from planner.families.nodes import Field, Relaxed
from planner.families.score import step_s
from planner.instance import Draft, Entry, Template

BRIEF, CLIMBED = 150, 1500
"""Evaluations of a first and of a second climb."""

PROMISING = 1.015
"""How much slower than the best a chain may be after the first climb."""

NEAR = 1.04
"""How much slower than the best layout a chain may be and still be moved about."""


def chain_modes(field: Field, rows: IntArray, mode_of: IntArray) -> IntArray:
    """Options that each stage may run: those of its degrees, fastest first, (p, V).

    mode_of: degrees and ZeRO stage of each option, (2, R); all stages take the highest ZeRO stage.
    """
    work = field.costs.layers[FORWARD, :, -1] + field.costs.layers[BACKWARD, :, -1]
    lines: list[list[int]] = []
    for row in rows:
        same = np.flatnonzero((mode_of[0] == mode_of[0, row]) & (mode_of[1] == mode_of[1].max()))
        lines.append(same[np.argsort(work[same], kind="stable")].tolist())
    width = max(len(line) for line in lines)
    return np.array([line + [-1] * (width - len(line)) for line in lines], np.int64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Settled:
    """A chain whose layers are dealt: its step time, itself, and evaluations spent."""

    seconds: float
    draft: Draft
    rows: IntArray
    spent: int


def settled(
    field: Field, found: Relaxed, mode_of: IntArray, best_s: float, near: float = NEAR
) -> Settled | None:
    """The chain with all layers dealt and moved about.

    None when it does not fit, or seems slower than ``near`` times the best so far.
    """
    if len(found.rows) == 0:
        return None
    total = field.costs.layers.shape[2] - 1
    work = field.costs.layers[FORWARD] + field.costs.layers[BACKWARD]
    layers = _all_dealt(found.layers, work[found.rows, -1] / total, total)
    if layers is None:
        return None
    cuts = np.concatenate(([0], np.cumsum(layers)))
    modes = chain_modes(field, found.rows, mode_of)
    cell = field.cell
    chosen = np.zeros(len(modes), np.int64)
    fits = options_for(field.costs, modes, cuts, cell.microbatches, chosen)
    if fits and step_s(field.costs, chosen, cuts, cell.microbatches) > near * best_s:
        return None
    seconds, rows, cuts, spent = climb(field.costs, modes, cuts, cell.microbatches, BRIEF)
    if seconds > PROMISING * best_s:
        return None
    seconds, rows, cuts, more = climb(field.costs, modes, cuts, cell.microbatches, CLIMBED)
    if not np.isfinite(seconds):
        return None
    template = Template(rows=tuple(cell.rows[rows].tolist()), cuts=tuple(int(cut) for cut in cuts))
    entry = Entry(template=template, count=cell.copies, microbatches=cell.microbatches)
    return Settled(seconds=seconds, draft=(entry,), rows=rows, spent=spent + more)


def even_chain(field: Field, rows: IntArray) -> Relaxed:
    """A chain of these options whose stages take about equally long."""
    total = field.costs.layers.shape[2] - 1
    work = field.costs.layers[FORWARD, :, -1] + field.costs.layers[BACKWARD, :, -1]
    speed = 1.0 / work[rows]
    layers = np.maximum(1, np.floor(total * speed / speed.sum())).astype(np.int64)
    return Relaxed(bound_s=0.0, rows=rows, layers=layers, period_s=0.0)


def _all_dealt(layers: IntArray, work: FloatArray, total: int) -> IntArray | None:
    """As many layers as there are: taken from the slowest stages, given where it is quickest.

    work: seconds of a layer on each stage.
    """
    dealt = layers.copy()
    while dealt.sum() > total:
        slowest = int(np.argmax(np.where(dealt > 1, dealt * work, -1.0)))
        if dealt[slowest] == 1:
            return None
        dealt[slowest] -= 1
    while dealt.sum() < total:
        dealt[np.argmin((dealt + 1) * work)] += 1
    return dealt
