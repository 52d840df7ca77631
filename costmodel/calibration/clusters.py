"""Builds the cluster of a case: its chips, and the links that its text names."""

import re
from dataclasses import dataclass
from math import ceil

from costmodel.calibration.case import UnscorableError
from costmodel.calibration.models import Reading
from costmodel.errors import InputError
from costmodel.hardware.read import chip_names, load_chip, load_cluster, load_link
from costmodel.hardware.values import Cluster

POOL = "measured"
"""Name of the only pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fabric:
    """Links of a chip's usual machine: scale-up, and NICs of a node of eight.

    domain: chips joined by the scale-up link, where more than a node. cores: parts of a chip that
    the source counts as chips. memory, bandwidth: of a chip whose sheet leaves
        them open.
    """

    scale_up: str
    link: str
    nics: int
    domain: int = 0
    cores: int = 1
    memory: str = ""
    bandwidth: str = ""


_FABRICS = {
    "nvidia-v100": _Fabric(scale_up="nvlink2", link="infiniband-edr", nics=4),
    "nvidia-a100": _Fabric(scale_up="nvlink3", link="infiniband-hdr", nics=8),
    "nvidia-a800": _Fabric(scale_up="nvlink3-a800", link="infiniband-hdr", nics=8),
    "nvidia-h100": _Fabric(scale_up="nvlink4", link="infiniband-ndr", nics=8),
    "nvidia-h200": _Fabric(scale_up="nvlink4", link="infiniband-ndr", nics=8),
    "nvidia-h800": _Fabric(scale_up="nvlink4-h800", link="infiniband-ndr", nics=8),
    "nvidia-b200": _Fabric(scale_up="nvlink5", link="infiniband-ndr", nics=8),
    "nvidia-b300": _Fabric(scale_up="nvlink5", link="infiniband-xdr", nics=8),
    "nvidia-gb200": _Fabric(scale_up="nvlink5-nvl72", link="infiniband-ndr", nics=8, domain=72),
    "nvidia-gb300": _Fabric(scale_up="nvlink5-nvl72", link="infiniband-xdr", nics=8, domain=72),
    "nvidia-t4": _Fabric(scale_up="pcie3-x16", link="ethernet-10g", nics=1),
    "nvidia-gh200": _Fabric(scale_up="nvlink4", link="slingshot-200g", nics=8),
    "amd-mi300x": _Fabric(scale_up="xgmi-mi300x", link="roce-400g", nics=8),
    "amd-mi325x": _Fabric(scale_up="xgmi-mi300x", link="roce-400g", nics=8),
    "amd-mi35": _Fabric(scale_up="xgmi-mi350x", link="roce-400g", nics=8),
    "huawei-ascend-910b": _Fabric(scale_up="hccs-910b", link="roce-200g", nics=8),
    "intel-gaudi2": _Fabric(scale_up="gaudi2-roce", link="roce-100g", nics=24),
    "metax-c500": _Fabric(scale_up="metaxlink", link="infiniband-hdr", nics=2),
    "google-tpu-v5p": _Fabric(scale_up="ici-v5p", link="ethernet-100g", nics=4, domain=8960),
    "google-tpu-v6e": _Fabric(scale_up="ici-v6e", link="ethernet-100g", nics=4, domain=256),
    "google-tpu-v7x": _Fabric(
        scale_up="ici-v7x",
        link="ethernet-100g",
        nics=4,
        domain=9216,
        memory="192 GB",
        bandwidth="7370 GB/s",
    ),
    "aws-trainium1": _Fabric(scale_up="neuronlink-v2", link="efa-100g", nics=2, cores=2),
}
"""By the beginning of the chip's name: the maker's own eight-chip, rack-scale or pod system."""

_RATES = {
    "25": "ethernet-25g",
    "100": "infiniband-edr",
    "200": "infiniband-hdr",
    "400": "infiniband-ndr",
    "800": "infiniband-xdr",
}


def cluster_of(reading: Reading) -> Cluster:
    """One pool of the stated chips. Raises UnscorableError for hardware that is not described."""
    hardware = reading.case.hardware
    chip = hardware.word("chip")
    if chip not in chip_names():
        raise UnscorableError(f"chip {chip or 'not stated'} has no profile")
    chips, per_node = hardware.need("n_chips"), hardware.size("chips_per_node") or 8
    fabric = fabric_of(chip)
    link, nics = _network(reading, fabric, per_node)
    domain = hardware.size("scale_up_domain") or fabric.domain
    pool = {
        "name": POOL,
        "island": POOL,
        "nodes": ceil(chips / per_node),
        "chips_per_node": per_node,
        "chip": chip,
        "scale_up": fabric.scale_up,
        "scale_out": {"link": link, "nics": nics},
        "overrides": _overrides(chip, fabric),
    }
    if domain > per_node:
        pool["scale_up_domain"] = ceil(domain / per_node) * per_node
    try:
        cluster = load_cluster({"name": "case", "class_defaults": True, "pools": [pool]})
        cluster.pools[0].chip.streaming_bytes_per_s()
        return cluster
    except InputError as error:
        raise UnscorableError(f"cluster: {error.violations[0]}") from error


def _overrides(name: str, fabric: _Fabric) -> dict[str, object]:
    """The share of one core in its chip's memory and arithmetic and in the node's links."""
    cores = fabric.cores
    if cores == 1:
        numbers = {"memory": fabric.memory, "memory_bandwidth": fabric.bandwidth}
        return {"chip": numbers} if fabric.memory else {}
    chip = load_chip(name, class_defaults=True)
    link = load_link(fabric.scale_up, class_defaults=True)
    return {
        "chip": {
            "memory": f"{chip.memory() / cores / 1e9} GB",
            "memory_bandwidth": f"{(chip.memory_bytes_per_s or 0.0) / cores / 1e9} GB/s",
            "peak": {
                precision: f"{value / cores / 1e12} TFLOP/s"
                for precision, value in chip.peak_flop_per_s.items()
                if value
            },
        },
        "scale_up": {"bandwidth": f"{link.bytes_per_s / cores / 1e9} GB/s"},
    }


def fabric_of(chip: str) -> _Fabric:
    """The usual machine of a chip. Raises UnscorableError for one that is not described."""
    fabric = next((f for name, f in _FABRICS.items() if chip.startswith(name)), None)
    if fabric is None:
        raise UnscorableError(f"links of {chip} not described")
    return fabric


def _network(reading: Reading, fabric: _Fabric, per_node: int) -> tuple[str, int]:
    """Link and NICs of a node from a text such as ``8x200G HDR IB``."""
    text = reading.case.hardware.word("scale_out")
    found = re.match(r"(?:(\d+)x)?(\d+)\s*G", text)
    if found is None or found[2] not in _RATES:
        reading.assume(f"network not stated: {fabric.nics} x {fabric.link} for eight chips")
        return fabric.link, max(1, fabric.nics * per_node // 8)
    count = int(found[1]) if found[1] else max(1, fabric.nics * per_node // 8)
    roce = "roce" in text.lower() or ("rdma" in text.lower() and "ib" not in text.lower())
    return (f"roce-{found[2]}g" if roce else _RATES[found[2]]), count
