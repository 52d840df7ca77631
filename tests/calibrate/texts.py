"""nccl-tests output as the programs print it, made of times."""

from collections.abc import Mapping, Sequence

from costmodel.calibration.link_profile import bus_bytes_per_s
from costmodel.calibration.measurements import CollectivePoint
from costmodel.model.placement import Collective

HEADER = (
    "#                                                              out-of-place              "
    "         in-place          \n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
    "time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
    "(us)  (GB/s)  (GB/s)       \n"
)


def point(
    op: Collective, ranks: int, size: float, seconds: float, nodes: int = 1
) -> CollectivePoint:
    return CollectivePoint(
        where="made:1",
        collective=op,
        ranks=ranks,
        nodes=nodes,
        payload_bytes=size,
        seconds=seconds,
    )


def nccl_text(
    times_s: Mapping[int, float],
    *,
    op: Collective = Collective.ALL_REDUCE,
    hosts: Sequence[str] = ("a",) * 8,
    program: str = "all_reduce_perf",
) -> str:
    devices = "".join(
        f"#  Rank {i:2} Group  0 Pid {100 + i:6} on {host:>10} device {i:2} [0x07] NVIDIA H100\n"
        for i, host in enumerate(hosts)
    )
    rows = "".join(_row(op, len(hosts), size, seconds) for size, seconds in times_s.items())
    return (
        f"# Collective test starting: {program}\n# nThread 1 nGpus 1\n#\n# Using devices\n"
        f"{devices}#\n{HEADER}{rows}# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 41.7\n"
    )


def _row(op: Collective, ranks: int, size: int, seconds: float) -> str:
    bus = bus_bytes_per_s(point(op, ranks, size, seconds)) / 1e9
    side = f"{seconds * 1e6:9.2f} {size / seconds / 1e9:7.2f} {bus:7.2f}      0"
    return f"{size:12} {size // 4:13} float sum -1 {side} {side}\n"
