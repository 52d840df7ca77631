"""What an interleaved stage keeps at least, whichever of its chunks hold the layers."""

from functools import lru_cache

import numpy as np

from costmodel.schedules.chunk_order import warm_passes
from planner.arrays import FloatArray


@lru_cache(maxsize=65536)
def kept_floors(p: int, i: int, m: int, v: int) -> tuple[tuple[float, float], ...]:
    """(micro-batches, layers' worth) pairs: stage i keeps ``sum over chunks count_c a_c``.

    With a chunk's activations at least those of one least layer, x of all chunks are worth at
    least ``all + least (x - v)`` least layers, where ``all`` is the sum of the counts and ``least``
    the smallest of them. Pairs are (all - v least, least); each holds for itself.
    """
    first = _at_first_backward(p, i, m, v)
    found = [first]
    mean = _mean(p, i, m, v)
    if mean is not None:
        found.append(mean)
    return tuple((float(c.sum() - v * c.min()), float(c.min())) for c in found)


def _at_first_backward(p: int, i: int, m: int, v: int) -> FloatArray:
    """Micro-batches alive in each chunk after the forward before the first backward, (v,)."""
    passes = min(m * v, warm_passes(p, i, m, v) + 1)
    chunk = np.arange(passes) % (p * v) // p
    return np.bincount(chunk, minlength=v).astype(np.float64)


def _mean(p: int, i: int, m: int, v: int) -> FloatArray | None:
    """Mean number alive in each chunk over a period of the steady part; None when there is none.

    Forward k runs as step ``2 k - w``, backward k as step ``w + 2 k + 1``; the backward of a
    micro-batch in chunk c comes ``(v - 1 - 2 c) p`` places after its forward, and every chunk has p
    of them in ``2 p v`` steps.
    """
    w = warm_passes(p, i, m, v)
    if m * v - w < 2 * p * v:
        return None
    chunk = np.arange(v)
    lifetime = 2 * w + 1 + 2 * p * (v - 1 - 2 * chunk)
    return lifetime / (2.0 * v)
