"""Activations and gradients that travel between neighbouring stages."""

from costmodel.efficiency import Efficiency
from costmodel.hardware.connection import connection
from costmodel.hardware.values import Cluster
from costmodel.layout.values import StageOption


def transfer_seconds(
    cluster: Cluster,
    sender: StageOption,
    receiver: StageOption,
    received_bytes: float,
    sent_bytes: float,
    efficiency: Efficiency,
) -> float:
    """Seconds of one hand-over between two stages; the same for the gradient on its way back.

    received_bytes, sent_bytes: per chip of the receiver and of the sender. A chip uses its share
    of its node's NICs, the slower end counts. Neighbouring stages of one pool meet over the
    network unless the whole pool is one scale-up domain.
    """
    pool = cluster.pool(sender.pool)
    inside = sender.pool == receiver.pool and pool.num_chips <= pool.scale_up_domain
    path = connection(cluster, sender.pool, receiver.pool, same_domain=inside)
    rate = path.chip_bytes_per_s * path.efficiency["p2p"]
    volume = max(received_bytes, sent_bytes)
    exposed_s = efficiency.p2p_exposed * volume / rate
    return path.latency_s + efficiency.p2p_exposed_latency_s + exposed_s
