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


BASE_LATENCY_S = 8.4e-6
SIMPLE_OVER_LL128 = 1.8


def wire_share(collective: Collective, ranks: FloatArray) -> FloatArray:
    """Bytes that cross one rank's link over the payload, ring or pairwise: ``f (n - 1) / n``.

    ``f`` is 2 for an all-reduce (reduce-scatter, then all-gather) and 1 otherwise. The payload is
    the whole tensor (all-gather: the result; reduce-scatter: the input; all-to-all: what one rank
    sends, its own part included).
    """
    return _VOLUME_FACTOR[collective] * (ranks - 1.0) / np.maximum(ranks, 1.0)


def latency_seconds(
    collective: Collective, ranks: FloatArray, hop_latency_s: FloatArray
) -> FloatArray:
    """Latency of a collective: launch plus hops, ``base + 1.8 alpha steps``; 0 for one rank.

    steps: n - 1 around a ring, or up and down a tree of depth ceil(log2 n), whichever is fewer,
    and twice that for an all-reduce. base 8.4 us and the factor 1.8 from a profile's hop latency
    (LL128 protocol) to the one of large messages (Simple) are NCCL's own (src/graph/tuning.cc);
    with 1.9 us a hop, 8 ranks take 49 us, and on 8 H100 16 to 64 MB all-reduces take 60 to 80 us
    longer than their bytes.
    """
    depth = np.ceil(np.log2(np.maximum(ranks, 1.0)))
    steps = _VOLUME_FACTOR[collective] * np.minimum(ranks - 1.0, 2.0 * depth)
    return np.where(ranks > 1, BASE_LATENCY_S + SIMPLE_OVER_LL128 * hop_latency_s * steps, 0.0)


def seconds(
    collective: Collective,
    payload_bytes: FloatArray,
    ranks: FloatArray,
    bytes_per_s: FloatArray,
    latency_s: FloatArray,
) -> FloatArray:
    """Seconds of a collective: ``latency + f (n - 1)/n S / beta``.

    payload_bytes: S; ranks: n; bytes_per_s: beta, achievable, one direction, per rank;
    latency_s: alpha of one hop. Zero where n = 1.
    """
    volume = wire_share(collective, ranks) * payload_bytes / bytes_per_s
    return latency_seconds(collective, ranks, latency_s) + volume
