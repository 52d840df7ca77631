"""Hill climbing on chains, compiled: layers from stage to stage, judged by the exact step time."""

import numba as nb
import numpy as np

from planner.arrays import IntArray
from planner.families.costs import Costs
from planner.families.score import fastest, step_s

WORK = 4_000_000
"""Micro-batches times stages that evaluations of one climb may simulate."""

GAIN = 1e-9
"""Relative improvement from which a move is taken."""


@nb.njit(cache=True, nogil=True)
def options_for(
    x: Costs, modes: IntArray, cuts: IntArray, microbatches: int, rows: IntArray
) -> bool:
    """Writes the fastest option of each stage that fits; whether all fit. modes: (p, V)."""
    p = len(modes)
    for i in range(p):
        rows[i] = fastest(x, modes[i], cuts[i], cuts[i + 1], min(microbatches, p - i))
        if rows[i] < 0:
            return False
    return True


@nb.njit(cache=True, nogil=True)
def _moved(cuts: IntArray, trial: IntArray, i: int, q: int) -> None:
    """Writes the cuts when stage i gives a layer to stage q."""
    trial[:] = cuts
    if i < q:
        trial[i + 1 : q + 1] -= 1
    else:
        trial[q + 1 : i + 1] += 1


@nb.njit(cache=True, nogil=True)
def climb(
    x: Costs, modes: IntArray, cuts: IntArray, microbatches: int, limit: int
) -> tuple[float, IntArray, IntArray, int]:
    """Best step time reached, with options, cuts and evaluations.

    modes: options of each stage in order of preference, padded with -1, (p, V). Every layer of a
    stage may move to any other; the best move is taken until none helps. It ends after ``limit``
    evaluations and the pass begun, or after ``WORK`` passes of a micro-batch through a stage.
    """
    p = len(modes)
    rows, trial_rows = np.zeros(p, np.int64), np.zeros(p, np.int64)
    best, spent, work = np.inf, 1, WORK // p
    if options_for(x, modes, cuts, microbatches, rows):
        best = step_s(x, rows, cuts, microbatches)
    trial = cuts.copy()
    improved = best < np.inf
    while improved and spent < limit:
        improved = False
        for i in range(p):
            for q in range(p):
                if i == q or cuts[i + 1] - cuts[i] < 2:
                    continue
                if spent * microbatches >= work:
                    return best, rows, cuts, spent
                _moved(cuts, trial, i, q)
                if not options_for(x, modes, trial, microbatches, trial_rows):
                    continue
                seconds = step_s(x, trial_rows, trial, microbatches)
                spent += 1
                if seconds < best * (1 - GAIN):
                    best, improved = seconds, True
                    cuts[:], rows[:] = trial, trial_rows
    return best, rows, cuts, spent
