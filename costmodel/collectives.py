"""Time of one collective over one group: latency plus volume over the slowest hop.

alpha-beta model (Thakur et al. 2005; the same form as NCCL's own tuning model,
``time = latency + bytes / bandwidth``). Arrays broadcast, so one call prices many groups.
"""

import numpy as np
from numpy.typing import NDArray

from costmodel.model.placement import Collective

FloatArray = NDArray[np.float64]

_VOLUME_FACTOR = {
    Collective.ALL_REDUCE: 2.0,
    Collective.ALL_GATHER: 1.0,
    Collective.REDUCE_SCATTER: 1.0,
    Collective.ALL_TO_ALL: 1.0,
}


def wire_share(collective: Collective, ranks: FloatArray) -> FloatArray:
    """Bytes that cross one rank's link over the payload, ring or pairwise: ``f (n - 1) / n``.

    ``f`` is 2 for an all-reduce (reduce-scatter, then all-gather) and 1 otherwise. The payload is
    the whole tensor (all-gather: the result; reduce-scatter: the input; all-to-all: what one rank
    sends, its own part included).
    """
    return _VOLUME_FACTOR[collective] * (ranks - 1.0) / np.maximum(ranks, 1.0)


def latency_growth(ranks: FloatArray) -> FloatArray:
    """Latency of a collective over that of one hop: ``1 + 0.15 n``, zero for a single rank.

    Pooled fit over published runs; holds for 2 to about 64 ranks, beyond that trees take over and
    the growth is held.
    """
    return np.where(ranks > 1, 1.0 + 0.15 * np.minimum(ranks, 64.0), 0.0)


def seconds(
    collective: Collective,
    payload_bytes: FloatArray,
    ranks: FloatArray,
    bytes_per_s: FloatArray,
    latency_s: FloatArray,
) -> FloatArray:
    """Seconds of a collective: ``alpha (1 + 0.15 n) + f (n - 1)/n S / beta``.

    payload_bytes: S; ranks: n; bytes_per_s: beta, achievable, one direction, per rank;
    latency_s: alpha of one hop. Zero where n = 1.
    """
    volume = wire_share(collective, ranks) * payload_bytes / bytes_per_s
    return latency_s * latency_growth(ranks) + volume
