"""What ZeRO 2 and 3 add to every micro-batch: gradients scattered, weights gathered."""

import numpy as np
from numpy.typing import NDArray

from costmodel.efficiency import Efficiency

FloatArray = NDArray[np.float64]


def sharding_seconds(
    zero: NDArray[np.int64],
    passes: tuple[FloatArray, FloatArray],
    sync: tuple[FloatArray, FloatArray],
    efficiency: Efficiency,
) -> tuple[FloatArray, FloatArray]:
    """Exposed traffic of one micro-batch, forward and backward; arrays of one shape.

    passes: seconds of a forward and a backward. sync: seconds in which the gradients are summed,
    and the parameters gathered.

    ZeRO 2 keeps only a shard of the gradients, so every micro-batch's backward scatters them;
    ZeRO 3 also gathers the weights in the forward and again in the backward (Rajbhandari et al.,
    arXiv 1910.02054, section 7). Exposed of t beside compute c: ``max(0, t - 0.85 c) + 0.21 t``
    (pooled fit over published FSDP runs).
    """

    def exposed(traffic_s: FloatArray, compute_s: FloatArray) -> FloatArray:
        hidden = efficiency.sharded_weights_overlap * compute_s
        least = efficiency.sharded_weights_exposed * traffic_s
        return np.maximum(0.0, traffic_s - hidden) + least

    scattered = np.where(zero >= 2, sync[0], 0.0)
    gathered = np.where(zero >= 3, sync[1], 0.0)
    return exposed(gathered, passes[0]), exposed(gathered + scattered, passes[1])
