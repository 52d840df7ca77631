"""Templates that the certificate has met, with the micro-batches that they really run.

Counts are those of the simulation on relaxed times, so the linear program over them is the one
that the certificate proves against.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numba as nb
import numpy as np

from costmodel.schedules import gpipe, one_f_one_b
from planner.arrays import FloatArray, IntArray
from planner.certificate.offers import Priced, Relaxation

Shape = tuple[int, tuple[int, ...], tuple[int, ...]]
"""(offer, option of every stage, layers of every stage)."""

simulate_1f1b = one_f_one_b.simulate
simulate_gpipe = gpipe.simulate


class Rows(NamedTuple):
    """Templates: seconds of forwards, backwards and hand-overs (N, P), stages, seconds after the
    last backward, most micro-batches by memory and batch, all (N,)."""

    forward: FloatArray
    backward: FloatArray
    hops: FloatArray
    stages: IntArray
    tail: FloatArray
    top: IntArray


@nb.njit(cache=True, nogil=True)
def _makespan(rows: Rows, i: int, m: int, piped: bool) -> float:
    p = rows.stages[i]
    forward, backward, hops = rows.forward[i, :p], rows.backward[i, :p], rows.hops[i, : p - 1]
    if piped:
        return float(simulate_gpipe(forward, backward, hops, hops, m)[0])
    return float(simulate_1f1b(forward, backward, hops, hops, m)[0])


@nb.njit(cache=True, nogil=True)
def _most(rows: Rows, i: int, budget_s: float, piped: bool) -> int:
    """Largest m whose makespan and tail are within the budget; 0 if none."""
    left = budget_s - rows.tail[i]
    tau = (rows.forward[i] + rows.backward[i]).max()
    if left < tau:
        return 0
    low, high = 0, min(int(left / tau * (1 + 1e-12)), rows.top[i]) + 1
    m = max(1, high - rows.stages[i])
    while high - low > 1:
        if m <= low or m >= high:
            m = (low + high) // 2
        t = _makespan(rows, i, m, piped)
        if t <= left:
            low = m
            m += max(1, int((left - t) / tau))
        else:
            high = m
            m -= max(1, int((t - left) / tau))
    return int(low)


@nb.njit(cache=True, nogil=True)
def _counts(rows: Rows, budget_s: float, piped: bool) -> IntArray:
    out = np.zeros(len(rows.stages), np.int64)
    for i in range(len(out)):
        out[i] = _most(rows, i, budget_s, piped)
    return out


@dataclass(slots=True, kw_only=True)
class Columns:
    """All templates met so far; grows. chips: by type, (N, K); samples: per micro-batch, (N,)."""

    relaxed: Relaxation
    batch: int
    piped: bool
    shapes: dict[Shape, int] = field(default_factory=dict[Shape, int])
    rows: Rows = field(init=False)
    chips: FloatArray = field(init=False)
    samples: IntArray = field(init=False)

    def __post_init__(self) -> None:
        wide, long = np.zeros((0, self.relaxed.deepest)), np.zeros(0, np.int64)
        self.rows = Rows(wide, wide, wide, long, np.zeros(0), long)
        self.chips, self.samples = np.zeros((0, len(self.relaxed.chips))), long

    def add(self, found: list[Shape]) -> int:
        """Adds the new ones among these; how many."""
        new = [shape for shape in dict.fromkeys(found) if shape not in self.shapes]
        if not new:
            return 0
        for shape in new:
            self.shapes[shape] = len(self.shapes)
        offers = [self.relaxed.offers[shape[0]] for shape in new]
        parts = zip(*(self._row(p, s) for p, s in zip(offers, new, strict=True)), strict=True)
        forward, backward, hops, stages, tail, top = parts
        old = self.rows
        self.rows = Rows(
            np.concatenate([old.forward, forward]),
            np.concatenate([old.backward, backward]),
            np.concatenate([old.hops, hops]),
            np.append(old.stages, stages),
            np.append(old.tail, tail),
            np.append(old.top, top),
        )
        chips = [self._chips(p, s) for p, s in zip(offers, new, strict=True)]
        self.chips = np.concatenate([self.chips, chips])
        self.samples = np.append(self.samples, [p.samples for p in offers])
        return len(new)

    def gains(self, budget_s: float) -> FloatArray:
        """Sequences of one copy of each within the budget, (N,)."""
        return (_counts(self.rows, budget_s, self.piped) * self.samples).astype(np.float64)

    def _chips(self, priced: Priced, shape: Shape) -> FloatArray:
        used, options = np.zeros(len(self.relaxed.chips)), np.array(shape[1])
        np.add.at(used, priced.kind[options], priced.chips[options].astype(np.float64))
        return used

    def _row(
        self, priced: Priced, shape: Shape
    ) -> tuple[FloatArray, FloatArray, FloatArray, int, float, int]:
        offer, options, held = priced.offer, np.array(shape[1]), np.array(shape[2])
        work, ahead = offer.work[options] * held, offer.forward[options] * held
        work[0] += offer.first_work[options[0]]
        ahead[0] += offer.first_forward[options[0]]
        work[-1] += offer.last_work[options[-1]]
        ahead[-1] += offer.last_forward[options[-1]]

        def padded(part: FloatArray) -> FloatArray:
            return np.append(part, np.zeros(self.relaxed.deepest - len(part)))

        tail = float(offer.tail[options[0], held[0]])
        top = min(self.batch // priced.samples, self._room(priced, shape))
        hops = padded(0.5 * offer.hand_over[options[:-1]])
        return padded(ahead), padded(work - ahead), hops, len(options), tail, top

    def _room(self, priced: Priced, shape: Shape) -> int:
        """Most micro-batches for whose activations there is room."""
        offer, p, most = priced.offer, len(shape[1]), self.batch
        for i, (o, n) in enumerate(zip(shape[1], shape[2], strict=True)):
            if i == 0:
                rooms = offer.alone if p == 1 else offer.first
            else:
                rooms = offer.last if i == p - 1 else offer.inner
            kept = int(np.sum(rooms[o, 1:] >= n))
            needed = self.relaxed.deepest if self.piped else p - i
            if kept < needed:
                most = min(most, kept)
        return most
