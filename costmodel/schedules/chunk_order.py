"""Which pass of interleaved 1F1B comes when on a stage with v chunks."""

import numba as nb


@nb.njit(cache=True, nogil=True)
def pass_at(
    step: int, warm: int, passes: int, p: int, v: int
) -> tuple[bool, int, int]:  # pragma: no cover - compiled
    """The ``step``-th pass of a stage: (is_backward, its k-th chunk, micro-batch)."""
    if step < warm:
        backward, k = False, step
    elif step < 2 * passes - warm:
        backward = (step - warm) % 2 == 1
        k = (step - warm) // 2 + (0 if backward else warm)
    else:
        backward, k = True, step - passes
    chunk = k % (p * v) // p
    return backward, (v - 1 - chunk if backward else chunk), k // (p * v) * p + k % p


@nb.njit(cache=True, nogil=True)
def warm_passes(p: int, i: int, m: int, v: int) -> int:  # pragma: no cover - compiled
    return min(m * v, 2 * (p - 1 - i) + (v - 1) * p)
