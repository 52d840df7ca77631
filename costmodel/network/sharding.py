"""What ZeRO 2 and 3 add to every micro-batch: gradients scattered, weights gathered."""

from dataclasses import dataclass

from costmodel.efficiency import Efficiency
from costmodel.frame import StageCosts
from costmodel.network.synchronisation import SyncTime


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingTime:
    """Exposed seconds of one micro-batch, in its forward and in its backward."""

    forward_s: float
    backward_s: float


def sharding_time(
    zero: int, costs: StageCosts, sync: SyncTime, efficiency: Efficiency
) -> ShardingTime:
    """Traffic of one micro-batch of a stage under a ZeRO stage.

    ZeRO 2 keeps only a shard of the gradients, so every micro-batch's backward scatters them;
    ZeRO 3 also gathers the weights in the forward and again in the backward (Rajbhandari et al.,
    arXiv 1910.02054, section 7). Exposed of t beside compute c: ``max(0, t - 0.85 c) + 0.21 t``
    (pooled fit over published FSDP runs).
    """

    def exposed(traffic_s: float, compute_s: float) -> float:
        hidden = efficiency.sharded_weights_overlap * compute_s
        return max(0.0, traffic_s - hidden) + efficiency.sharded_weights_exposed * traffic_s

    gather_s = sync.gather_s if zero >= 3 else 0.0
    reduce_s = sync.reduce_s if zero >= 2 else 0.0
    return ShardingTime(
        forward_s=exposed(gather_s, costs.forward_s),
        backward_s=exposed(gather_s + reduce_s, costs.backward_s),
    )
