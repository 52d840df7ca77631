"""Ends of many pipelines at once, and no event twice: 1F1B and interleaved 1F1B.

``LANES`` pipelines with equally many stages and chunks run side by side, so that one instruction
serves several. Once all times of a pipeline have moved by the same amount between two moments,
everything after moves by that amount too (passes are maxima and sums of earlier times, which a
shift passes through), so the rest of the micro-batches but the last ones is skipped. The result
is that of the event simulation up to rounding.

``took[d, c, lane]``: seconds of a pass of place c, d 0 forward and 1 backward; ``hops[d, c, lane]``
from place c to the next one and back, 0 after the last.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from costmodel.schedules.chunk_order import pass_at, warm_passes
from costmodel.schedules.kind import FloatArray

IntArray = NDArray[np.int64]

LANES = 8
ROUNDING = 1e-13
"""Relative difference of two shifts that counts as none."""


@nb.njit(cache=True, nogil=True)
def _sweep(
    k: int, took: FloatArray, hops: FloatArray, free: FloatArray, back: FloatArray
) -> None:  # pragma: no cover - compiled
    """Backward k - (p - i), if there is one, and forward k of every stage i, in order."""
    p = len(free)
    arrival = np.zeros(LANES)
    for i in range(p):
        if k >= p - i:
            for lane in range(LANES):
                ready = back[i + 1, lane] + hops[1, i, lane]
                ended = max(free[i, lane], ready) + took[1, i, lane]
                back[i, lane] = ended
                ended = max(ended, arrival[lane]) + took[0, i, lane]
                free[i, lane] = ended
                arrival[lane] = ended + hops[0, i, lane]
        else:
            for lane in range(LANES):
                ended = max(free[i, lane], arrival[lane]) + took[0, i, lane]
                free[i, lane] = ended
                arrival[lane] = ended + hops[0, i, lane]


@nb.njit(cache=True, nogil=True)
def _shift(
    lane: int, free: FloatArray, back: FloatArray, anchor: FloatArray
) -> float:  # pragma: no cover - compiled
    """By how much all times have moved since the anchor; negative when not by the same."""
    p = len(free)
    moved = free[0, lane] - anchor[0, lane]
    tolerance = ROUNDING * free[0, lane]
    for i in range(p - 1, -1, -1):
        if abs(free[i, lane] - anchor[i, lane] - moved) > tolerance:
            return -1.0
        if abs(back[i, lane] - anchor[p + i, lane] - moved) > tolerance:
            return -1.0
    return float(moved)


@nb.njit(cache=True, nogil=True)
def _drain(
    n: int, took: FloatArray, hops: FloatArray, free: FloatArray, back: FloatArray
) -> None:  # pragma: no cover - compiled
    """The backwards of the last n = min(m, p) micro-batches that are left; ends in ``free``."""
    p = len(free)
    ready_at = np.zeros((n, LANES))
    for i in range(p - 1, -1, -1):
        first = max(0, n - (p - i))
        if i < p - 1 and n >= p - i:
            ready_at[first] = back[i + 1]
        for b in range(first, n):
            for lane in range(LANES):
                ready = ready_at[b, lane] + hops[1, i, lane] if i < p - 1 else 0.0
                ended = max(free[i, lane], ready) + took[1, i, lane]
                free[i, lane] = ended
                ready_at[b, lane] = ended


@nb.njit(cache=True, nogil=True)
def one_f_one_b_ends(
    took: FloatArray, hops: FloatArray, microbatches: IntArray
) -> FloatArray:  # pragma: no cover - compiled
    """End of the last backward of each stage of strict 1F1B, (p, LANES), seconds.

    microbatches: of each lane; all at least p, or all alike.
    """
    p = took.shape[1]
    free, back = np.zeros((p, LANES)), np.zeros((p + 1, LANES))
    at_free, at_back = np.zeros((p, LANES)), np.zeros((p + 1, LANES))
    anchor, anchored = np.zeros((2 * p, LANES)), -1
    stop = microbatches - 1
    moved, steady = np.zeros(LANES), np.zeros(LANES, np.bool_)
    k, last = 0, stop.max()
    while k <= last:
        _sweep(k, took, hops, free, back)
        if k >= 2 * p - 1:
            if anchored < 0 or k - anchored > p:
                anchored = k
                anchor[:p], anchor[p:] = free, back[:p]
            else:
                _settle((k, k - anchored), (free, back, anchor), (stop, moved, steady))
                last = stop.max()
        for lane in range(LANES):
            if stop[lane] == k:
                at_free[:, lane] = free[:, lane] + moved[lane]
                at_back[:, lane] = back[:, lane] + moved[lane]
        k += 1
    _drain(min(p, microbatches[0]), took, hops, at_free, at_back)
    return at_free


@nb.njit(cache=True, nogil=True)
def _settle(
    now: tuple[int, int],
    times: tuple[FloatArray, FloatArray, FloatArray],
    found: tuple[IntArray, FloatArray, NDArray[np.bool_]],
) -> None:  # pragma: no cover - compiled
    """Lanes that have become periodic: the sweep after which they are left, and what is skipped."""
    k, period = now
    stop, moved, steady = found
    for lane in range(LANES):
        if steady[lane] or stop[lane] - k < period:
            continue
        shift = _shift(lane, times[0], times[1], times[2])
        if shift >= 0.0:
            steady[lane] = True
            rest = stop[lane] - k
            stop[lane] = k + rest % period
            moved[lane] = shift * (rest // period)


@nb.njit(cache=True, nogil=True)
def interleaved_visits(p: int, v: int, m: int) -> IntArray:  # pragma: no cover - compiled
    """All passes of interleaved 1F1B in an order in which each finds its input, (2 p v m, 5).

    Columns: stage, direction, place, and the slots of its input and of its end. Slot
    ``(direction p v + place) m + micro-batch`` is that of the pass; the one after all is empty.
    """
    chunks = p * v
    visits, n = np.empty((2 * chunks * m, 5), np.int64), 0
    done, known = np.zeros(p, np.int64), np.zeros((2, chunks), np.int64)
    while n < len(visits):
        for i in range(p):
            warm = warm_passes(p, i, m, v)
            while done[i] < 2 * m * v:
                backward, nth, k = pass_at(done[i], warm, m * v, p, v)
                place, way = nth * p + i, 1 if backward else 0
                turned = backward and place == chunks - 1
                giver = place if turned else place + (1 if backward else -1)
                source = 0 if turned else way
                if giver >= 0 and known[source, giver] <= k:
                    break
                needs = (source * chunks + giver) * m + k if giver >= 0 else 2 * chunks * m
                visits[n, 0], visits[n, 1], visits[n, 2] = i, way, place
                visits[n, 3], visits[n, 4] = needs, (way * chunks + place) * m + k
                known[way, place] += 1
                done[i] += 1
                n += 1
    return visits


@nb.njit(cache=True, nogil=True)
def run_visits(
    visits: IntArray, took: FloatArray, waits: FloatArray, ended: FloatArray, clock: FloatArray
) -> None:  # pragma: no cover - compiled
    """Ends of all passes, in their slots, and of all stages. waits: before a pass, as ``took``."""
    clock[:] = 0.0
    ended[-1] = 0.0
    for n in range(len(visits)):
        i, way, place = visits[n, 0], visits[n, 1], visits[n, 2]
        needs, slot = visits[n, 3], visits[n, 4]
        for lane in range(LANES):
            ready = ended[needs, lane] + waits[way, place, lane]
            end = max(clock[i, lane], ready) + took[way, place, lane]
            clock[i, lane] = end
            ended[slot, lane] = end


@nb.njit(cache=True, nogil=True)
def input_waits(hops: FloatArray) -> FloatArray:  # pragma: no cover - compiled
    """Hand-overs by the place that receives: nothing before the first, nor where it turns."""
    waits = np.zeros_like(hops)
    waits[0, 1:] = hops[0, :-1]
    waits[1, :-1] = hops[1, :-1]
    return waits


@nb.njit(cache=True, nogil=True)
def _round_shifts(
    ended: FloatArray, p: int, v: int, rounds: int
) -> FloatArray:  # pragma: no cover - compiled
    """By how much the last two rounds of turns moved over so many rounds; negative if unequally.

    A round is p micro-batches through all chunks. The input of a pass is at most one round old,
    so that two rounds which have moved alike make all later ones do so. Shape (LANES,).
    """
    chunks, m = p * v, (len(ended) - 1) // (2 * p * v)
    last = chunks * m - 1
    moved = ended[last] - ended[last - rounds * p]
    worst = np.zeros(LANES)
    for i in range(p):
        warm = warm_passes(p, i, m, v)
        for step in range(m * v - 2 * chunks, m * v):
            for backward in range(2):
                k = step - warm if backward else step
                nth = k % chunks // p
                place = (v - 1 - nth if backward else nth) * p + i
                slot = (backward * chunks + place) * m + k // chunks * p + k % p
                for lane in range(LANES):
                    shift = ended[slot, lane] - ended[slot - rounds * p, lane]
                    worst[lane] = max(worst[lane], abs(shift - moved[lane]))
    return np.where(worst <= ROUNDING * ended[last], moved, -1.0)


FIRST_ROUNDS = 6
"""Rounds that are run before any are skipped: at most 2 warm up, then 2 are compared 2 apart."""


@nb.njit(cache=True, nogil=True)
def rounds_run(rounds: int, tried: int) -> int:  # pragma: no cover - compiled
    """Rounds to run of so many, when ``tried`` were not enough: an even number fewer, or all."""
    wanted = 2 * tried if tried else FIRST_ROUNDS
    wanted += (rounds - wanted) % 2
    return wanted if wanted < rounds else rounds


@nb.njit(cache=True, nogil=True)
def skipped_rounds(
    ended: FloatArray, clock: FloatArray, p: int, v: int, left: IntArray
) -> bool:  # pragma: no cover - compiled
    """Adds the rounds that were left out to the ends of the stages; false if that is not possible.

    left: of each lane, even.
    """
    if left.max() == 0:
        return True
    every, other = _round_shifts(ended, p, v, 1), np.zeros(LANES)
    if every.min() < 0.0:
        other = _round_shifts(ended, p, v, 2)
    for lane in range(LANES):
        if every[lane] < 0.0 and other[lane] < 0.0 and left[lane] > 0:
            return False
        moved = every[lane] if every[lane] >= 0.0 else other[lane] / 2.0
        clock[:, lane] += moved * left[lane]
    return True


@nb.njit(cache=True, nogil=True)
def interleaved_ends(
    took: FloatArray,
    hops: FloatArray,
    rounds: IntArray,
    visits: IntArray,
    ended: FloatArray,
    p: int,
) -> FloatArray:  # pragma: no cover - compiled
    """End of the last backward of each stage, (p, LANES), seconds.

    rounds: of p micro-batches, of each lane. visits, ended: of the rounds that are tried first,
    those of ``rounds_run``; equally many in all lanes.
    """
    chunks = took.shape[1]
    waits, clock = input_waits(hops), np.empty((p, LANES))
    first = len(visits) // (2 * chunks * p)
    run_visits(visits, took, waits, ended, clock)
    if skipped_rounds(ended, clock, p, chunks // p, rounds - first):
        return clock
    ends = np.empty((p, LANES))
    for wanted in np.unique(rounds):
        ran, settled = first, False
        while not settled:
            ran = rounds_run(wanted, ran)
            ended = np.empty((2 * chunks * ran * p + 1, LANES))
            run_visits(interleaved_visits(p, chunks // p, ran * p), took, waits, ended, clock)
            left = np.where(rounds == wanted, wanted - ran, 0)
            settled = skipped_rounds(ended, clock, p, chunks // p, left)
        for lane in range(LANES):
            if rounds[lane] == wanted:
                ends[:, lane] = clock[:, lane]
    return ends
