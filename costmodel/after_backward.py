"""What a stage still does when its last backward has ended; arrays of one shape, or numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costmodel.efficiency import Efficiency
from costmodel.job import Job
from costmodel.memory import Shards

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Sync:
    """Seconds of gradient sums and parameter gathers."""

    reduce_s: FloatArray
    gather_s: FloatArray


def reached_sync(sync: Sync, zero: IntArray, efficiency: Efficiency) -> Sync:
    """Gradient sums and parameter gathers at the rate that the software reaches.

    Only what is trained is summed and, unless its weights are sharded, gathered.
    """
    slow, trained = efficiency.sync_traffic, efficiency.trained_share
    return Sync(
        reduce_s=slow * trained * sync.reduce_s,
        gather_s=slow * sync.gather_s * np.where(zero < 3, trained, 1.0),
    )


def exposed_sync_s(
    sync: Sync,
    zero: IntArray,
    forward_s: FloatArray,
    backward_s: FloatArray,
    efficiency: Efficiency,
) -> FloatArray:
    """What the last backward (gradients) and the next forward (parameters) do not hide.

    ``max(e t, t - 0.8 B)`` and ``max(e t, t - 0.8 F)``, e the share that never hides. What ZeRO 2
    and 3 already move during the micro-batches is not moved again.
    """

    def exposed(traffic_s: FloatArray, compute_s: FloatArray) -> FloatArray:
        hidden = efficiency.sync_overlap * compute_s
        return np.maximum(efficiency.sync_exposed * traffic_s, traffic_s - hidden)

    reduce_s = np.where(zero < 2, exposed(sync.reduce_s, backward_s), 0.0)
    return reduce_s + np.where(zero < 3, exposed(sync.gather_s, forward_s), 0.0)


def pieces_s(
    layers: FloatArray, ranks: FloatArray, zero: IntArray, efficiency: Efficiency
) -> FloatArray:
    """Parameters gathered slice by slice after the update: ``c layers (ranks - 1)``.

    Only with ZeRO 1 and 2, and for software that does not gather flat buffers. layers: of the
    stage; ranks: among which each weight is spread.
    """
    spread = (zero == 1) | (zero == 2)
    return efficiency.gather_piece_s * np.where(spread, layers * (ranks - 1.0), 0.0)


def optimizer_s(
    held: tuple[FloatArray, FloatArray],
    shards: Shards,
    zero: IntArray,
    bytes_per_s: FloatArray,
    efficiency: Efficiency,
) -> FloatArray:
    """Memory-bound update of the chip's share: ``34 bytes x parameters / bandwidth``.

    held: dense and expert parameters on the chip before ZeRO, which shards their update from
    stage 1 on.
    """
    updated = _updated(held, shards, zero, efficiency)
    return efficiency.optimizer_bytes_per_parameter * updated / bytes_per_s


def host_optimizer_s(
    held: tuple[FloatArray, FloatArray],
    shards: Shards,
    zero: IntArray,
    backward_s: FloatArray,
    job: Job,
    efficiency: Efficiency,
) -> FloatArray:
    """Update of the chip's share where its optimizer's state is in the host's memory.

    ``max(0, g n / H - 0.8 B) + 34 n / M + w n / H`` for n parameters: gradients (g bytes) go down
    under the last micro-batch's backward B, the host's memory bounds the update at M bytes/s, and
    weights (w bytes) come back (Ren et al., ZeRO-Offload, arXiv 2101.06840, section 4).
    """
    updated = _updated(held, shards, zero, efficiency)
    per_copy = updated / efficiency.host_copy_bytes_per_s
    down_s = job.gradient_bytes * per_copy - efficiency.sync_overlap * backward_s
    up_s = job.weight_bytes * per_copy
    bytes_moved = efficiency.optimizer_bytes_per_parameter * updated
    return np.maximum(0.0, down_s) + bytes_moved / efficiency.host_update_bytes_per_s + up_s


def _updated(
    held: tuple[FloatArray, FloatArray], shards: Shards, zero: IntArray, efficiency: Efficiency
) -> FloatArray:
    """Parameters whose update is the chip's."""
    ranks = shards.dense, shards.expert
    own = [part / np.where(zero >= 1, n, 1.0) for part, n in zip(held, ranks, strict=True)]
    return efficiency.trained_share * (own[0] + own[1])
