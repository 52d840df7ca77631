"""When many layouts with equally many stages and chunks have done their step."""

from typing import NamedTuple

import numba as nb
import numpy as np

from costmodel.batch.rows import IntArray
from costmodel.schedules import gpipe
from costmodel.schedules.steady import (
    LANES,
    interleaved_ends,
    interleaved_visits,
    one_f_one_b_ends,
    rounds_run,
)
from costmodel.stage.table import FloatArray


class Pipelines(NamedTuple):
    """N pipelines of p stages with v chunks; a tuple, because compiled loops read it.

    chunk_kinds: (p v,); stage_kinds: (p,). forward_s, backward_s: of a micro-batch in a chunk of
    each kind, (N, chunk kinds); extra_forward_s, extra_backward_s: what a stage of each kind adds
    to each of its chunks, (N, stage kinds). hop_s: (N,). microbatches: (N,). after_s: from the last
    backward of a stage of each kind to the end of its step, (N, stage kinds).
    """

    chunk_kinds: IntArray
    stage_kinds: IntArray
    forward_s: FloatArray
    backward_s: FloatArray
    extra_forward_s: FloatArray
    extra_backward_s: FloatArray
    hop_s: FloatArray
    microbatches: IntArray
    after_s: FloatArray


def step_seconds(kind: str, pipelines: Pipelines, rows: IntArray) -> FloatArray:
    """When the last stage of each of these rows is done, (rows,), seconds."""
    m, depth = pipelines.microbatches[rows], len(pipelines.stage_kinds)
    run, alike = _RUNS[kind]
    key = alike(m, depth)
    order = np.lexsort((m, key))
    done = np.empty(len(rows))
    run(pipelines, rows[order], key[order], done)
    found = np.empty(len(rows))
    found[order] = done
    return found


def _plain_alike(m: IntArray, depth: int) -> IntArray:
    """Pipelines that are full run side by side whatever their number of micro-batches."""
    return np.minimum(m, depth)


def _rounds_alike(m: IntArray, depth: int) -> IntArray:
    """Micro-batches that are run before the first ones are skipped."""
    rounds, index = np.unique(m // depth, return_inverse=True)
    return depth * np.array([rounds_run(int(n), 0) for n in rounds], np.int64)[index]


@nb.njit(cache=True, nogil=True)
def _fill(
    x: Pipelines, rows: IntArray, took: FloatArray, hops: FloatArray
) -> None:  # pragma: no cover - compiled
    """Times of the passes and hand-overs of LANES rows."""
    chunks, p = len(x.chunk_kinds), len(x.stage_kinds)
    for c in range(chunks):
        kind, stage = x.chunk_kinds[c], x.stage_kinds[c % p]
        for lane in range(LANES):
            row = rows[lane]
            took[0, c, lane] = x.forward_s[row, kind] + x.extra_forward_s[row, stage]
            took[1, c, lane] = x.backward_s[row, kind] + x.extra_backward_s[row, stage]
            hops[:, c, lane] = x.hop_s[row] if c < chunks - 1 and p > 1 else 0.0


@nb.njit(cache=True, nogil=True)
def _finish(
    x: Pipelines, rows: IntArray, ends: FloatArray, done: FloatArray
) -> None:  # pragma: no cover - compiled
    """The latest end of a stage's step. done: (lanes in use,)."""
    for lane in range(len(done)):
        latest = 0.0
        for i in range(len(ends)):
            latest = max(latest, ends[i, lane] + x.after_s[rows[lane], x.stage_kinds[i]])
        done[lane] = latest


@nb.njit(cache=True, nogil=True)
def _block(
    rows: IntArray, key: IntArray, at: int, lanes: IntArray
) -> int:  # pragma: no cover - compiled
    """Rows from ``at`` on that run side by side, the last one repeated; how many there are."""
    n = 0
    for lane in range(LANES):
        if at + lane < len(rows) and key[at + lane] == key[at]:
            n = lane + 1
        lanes[lane] = rows[at + n - 1]
    return n


@nb.njit(cache=True, nogil=True)
def _one_f_one_b(
    x: Pipelines, rows: IntArray, key: IntArray, done: FloatArray
) -> None:  # pragma: no cover - compiled
    p, at = len(x.stage_kinds), 0
    took, hops = np.empty((2, p, LANES)), np.empty((2, p, LANES))
    lanes = np.empty(LANES, np.int64)
    while at < len(rows):
        n = _block(rows, key, at, lanes)
        _fill(x, lanes, took, hops)
        ends = one_f_one_b_ends(took, hops, x.microbatches[lanes])
        _finish(x, lanes, ends, done[at : at + n])
        at += n


@nb.njit(cache=True, nogil=True)
def _gpipe(
    x: Pipelines, rows: IntArray, key: IntArray, done: FloatArray
) -> None:  # pragma: no cover - compiled
    p, at = len(x.stage_kinds), 0
    took, hops = np.empty((2, p, LANES)), np.empty((2, p, LANES))
    ends, lanes = np.empty((p, LANES)), np.empty(LANES, np.int64)
    while at < len(rows):
        n = _block(rows, key, at, lanes)
        _fill(x, lanes, took, hops)
        for lane in range(n):
            m = int(x.microbatches[lanes[lane]])
            own = took[:, :, lane].copy()
            up, down = hops[0, : p - 1, lane].copy(), hops[1, : p - 1, lane].copy()
            ends[:, lane] = gpipe.simulate(own[0], own[1], up, down, m)[1]
        _finish(x, lanes, ends, done[at : at + n])
        at += n


@nb.njit(cache=True, nogil=True)
def _interleaved(
    x: Pipelines, rows: IntArray, key: IntArray, done: FloatArray
) -> None:  # pragma: no cover - compiled
    chunks, p, at = len(x.chunk_kinds), len(x.stage_kinds), 0
    took, hops = np.empty((2, chunks, LANES)), np.empty((2, chunks, LANES))
    lanes, m = np.empty(LANES, np.int64), 0
    visits, ended = np.empty((0, 5), np.int64), np.empty((0, LANES))
    while at < len(rows):
        n = _block(rows, key, at, lanes)
        if m != key[at]:
            m = key[at]
            visits = interleaved_visits(p, chunks // p, m)
            ended = np.empty((2 * chunks * m + 1, LANES))
        _fill(x, lanes, took, hops)
        rounds = x.microbatches[lanes] // p
        ends = interleaved_ends(took, hops, rounds, visits, ended, p)
        _finish(x, lanes, ends, done[at : at + n])
        at += n


_RUNS = {
    "1f1b": (_one_f_one_b, _plain_alike),
    "gpipe": (_gpipe, _plain_alike),
    "interleaved": (_interleaved, _rounds_alike),
}
