"""Micro-batches that interleaved stages keep at their worst moments."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from costmodel.schedules.chunk_order import pass_at, warm_passes

IntArray = NDArray[np.int64]


def most_counts(num_stages: int, stage: int, microbatches: int, chunks: int) -> IntArray:
    """Micro-batches alive in each chunk at the moments that can be the worst, (moments, v).

    Passes repeat after as many micro-batches as there are stages, so that four times as many show
    all there is.
    """
    return _most_counts(num_stages, stage, min(microbatches, 4 * num_stages), chunks)


@lru_cache(maxsize=65536)
def _most_counts(p: int, i: int, m: int, v: int) -> IntArray:
    warm = warm_passes(p, i, m, v)
    steps = [pass_at(step, warm, m * v, p, v)[:2] for step in range(2 * m * v)]
    alive = np.zeros((len(steps), v), np.int64)
    for n, (backward, nth) in enumerate(steps):
        alive[n, nth] = -1 if backward else 1
    found = np.unique(np.cumsum(alive, axis=0), axis=0)
    more = (found[None] >= found[:, None]).all(axis=2) & (found[None] != found[:, None]).any(axis=2)
    return found[~more.any(axis=1)]
