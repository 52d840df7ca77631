"""When the passes of listed orders run: one event simulation for every schedule.

A pass starts when its stage has ended the one before it and its input is there; hand-overs take
time and occupy no stage. Passes side by side share a start and an end.
"""

from dataclasses import dataclass
from functools import lru_cache

import numba as nb
import numpy as np
from numpy.typing import NDArray

from costmodel.schedules.kind import FloatArray, Phase, Route, ScheduleKind
from costmodel.schedules.passes import passes_of, routes_of

IntArray = NDArray[np.int64]
FORWARD, BACKWARD, INPUT, WEIGHT = (int(phase) for phase in Phase)
PHASE, PLACE, MICROBATCH, BESIDE = 0, 1, 2, 3
ABSENT = -1
"""Phase of the padding behind the passes of a stage that has fewer than others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Times at every place, ways one after the other; arrays of shape (places,).

    backward_s: all of it, of which weight_s makes weight gradients. up_s, down_s: hand-over of an
    activation to the next place of the way, and of the gradient back from there. forward_ep_s,
    backward_ep_s: exchanges of tokens within the passes, which passes side by side hide.
    """

    forward_s: FloatArray
    backward_s: FloatArray
    weight_s: FloatArray
    up_s: FloatArray
    down_s: FloatArray
    forward_ep_s: FloatArray
    backward_ep_s: FloatArray


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Lists:
    """What every stage runs.

    passes: (phase, place, micro-batch, beside) of each stage's passes, (p, n, 4).
    ways: places of one way; a way begins at every multiple of it.
    """

    passes: IntArray
    ways: int
    microbatches: int


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Times:
    """Start and end of every pass, (p, n), seconds; of padding the end of the last pass."""

    start_s: FloatArray
    end_s: FloatArray

    @property
    def ends(self) -> FloatArray:
        """When each stage ends its last pass, (p,)."""
        return self.end_s[:, -1]


@lru_cache(maxsize=64)
def lists_of(kind: ScheduleKind, num_stages: int, microbatches: int, chunks: int) -> Lists:
    """The passes of all stages, their chunks looked up among the places of the ways."""
    routes = routes_of(kind, num_stages, chunks)
    place = _places(routes)
    share = -(-microbatches // len(routes))
    rows = [
        [
            (one.phase, place[one.microbatch // share, i, one.chunk], one.microbatch, one.beside)
            for one in passes_of(kind, num_stages, i, microbatches, chunks)
        ]
        for i in range(num_stages)
    ]
    passes = np.full((num_stages, max(len(row) for row in rows), 4), ABSENT, np.int64)
    for i, row in enumerate(rows):
        passes[i, : len(row)] = row
    return Lists(passes=passes, ways=len(routes[0]), microbatches=microbatches)


def _places(routes: tuple[Route, ...]) -> dict[tuple[int, int, int], int]:
    """(way, stage, chunk) -> place."""
    visited = [(w, stage, nth) for w, route in enumerate(routes) for stage, nth in route]
    return {key: place for place, key in enumerate(visited)}


def replay(lists: Lists, seconds: Seconds) -> Times:
    """Runs the lists. Raises ValueError when they wait for each other for ever."""
    start, end = _replay(
        lists.passes,
        lists.ways,
        lists.microbatches,
        np.stack(
            [
                seconds.forward_s,
                seconds.backward_s,
                seconds.backward_s - seconds.weight_s,
                seconds.weight_s,
            ]
        ),
        np.stack([seconds.up_s, seconds.down_s]),
        np.stack([seconds.forward_ep_s, seconds.backward_ep_s]),
    )
    return Times(start_s=start, end_s=end)


@nb.njit(cache=True, nogil=True)
def _replay(
    passes: IntArray,
    ways: int,
    microbatches: int,
    took: FloatArray,
    hops: FloatArray,
    exchange: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # pragma: no cover - compiled
    """Sweeps over the stages; each runs as far as its inputs have arrived."""
    p, n, _ = passes.shape
    ended = np.full((2, took.shape[1], microbatches), -1.0)
    start, end = np.zeros((p, n)), np.zeros((p, n))
    done, clock = np.zeros(p, np.int64), np.zeros(p)
    moved = True
    while moved:
        moved = False
        for i in range(p):
            while done[i] < n:
                j = done[i]
                pair = j + 1 < n and passes[i, j + 1, BESIDE] == 1
                ready = _arrival(passes[i], j, pair, ways, ended, hops)
                if ready < 0.0:
                    break
                begin = max(clock[i], ready)
                clock[i] = begin + _duration(passes[i], j, pair, took, exchange)
                done[i] += 2 if pair else 1
                start[i, j : done[i]] = begin
                end[i, j : done[i]] = clock[i]
                _note(passes[i, j : done[i]], clock[i], ended)
                moved = True
    if done.min() < n:
        raise ValueError("the stages wait for each other")
    return start, end


@nb.njit(cache=True, nogil=True)
def _note(ran: IntArray, now: float, ended: FloatArray) -> None:  # pragma: no cover - compiled
    """Writes down what the passes have handed on."""
    for one in ran:
        if one[PHASE] != ABSENT and one[PHASE] != WEIGHT:
            ended[0 if one[PHASE] == FORWARD else 1, one[PLACE], one[MICROBATCH]] = now


@nb.njit(cache=True, nogil=True)
def _arrival(
    row: IntArray, j: int, pair: bool, ways: int, ended: FloatArray, hops: FloatArray
) -> float:  # pragma: no cover - compiled
    """When a pass, or both of a pair, can start; negative as long as it is not known."""
    ready = _ready(row[j], ways, ended, hops)
    if not pair or ready < 0.0:
        return ready
    other = _ready(row[j + 1], ways, ended, hops)
    return -1.0 if other < 0.0 else max(ready, other)


@nb.njit(cache=True, nogil=True)
def _duration(
    row: IntArray, j: int, pair: bool, took: FloatArray, exchange: FloatArray
) -> float:  # pragma: no cover - compiled
    """Seconds of a pass; of two side by side the longer of their computing and exchanging."""
    if row[j, PHASE] == ABSENT:
        return 0.0
    alone = took[row[j, PHASE], row[j, PLACE]]
    if not pair:
        return float(alone)
    both = alone + took[row[j + 1, PHASE], row[j + 1, PLACE]]
    moving = 0.0
    for k in (j, j + 1):
        moving += exchange[0 if row[k, PHASE] == FORWARD else 1, row[k, PLACE]]
    return float(max(both - moving, moving))


@nb.njit(cache=True, nogil=True)
def _ready(
    one: IntArray, ways: int, ended: FloatArray, hops: FloatArray
) -> float:  # pragma: no cover - compiled
    """When the input of a pass is there; negative as long as it is not known."""
    phase, place, m = one[PHASE], one[PLACE], one[MICROBATCH]
    if phase == ABSENT:
        return 0.0
    if phase == WEIGHT:
        return float(ended[1, place, m])
    if phase == FORWARD:
        if place % ways == 0:
            return 0.0
        before = ended[0, place - 1, m]
        return float(before if before < 0.0 else before + hops[0, place - 1])
    if place % ways == ways - 1:
        return float(ended[0, place, m])
    before = ended[1, place + 1, m]
    return float(before if before < 0.0 else before + hops[1, place])
