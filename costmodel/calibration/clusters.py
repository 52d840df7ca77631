"""Builds the cluster of a case: its chips, and the links that its text names."""

import re
from dataclasses import dataclass
from math import ceil

from costmodel.calibration.case import UnscorableError
from costmodel.calibration.models import Reading
from costmodel.errors import InputError
from costmodel.hardware.read import chip_names, load_cluster
from costmodel.hardware.values import Cluster

POOL = "measured"
"""Name of the only pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fabric:
    """Links of a chip's usual machine: scale-up, and NICs of a node of eight."""

    scale_up: str
    link: str
    nics: int


_FABRICS = {
    "nvidia-v100": _Fabric(scale_up="nvlink2", link="infiniband-edr", nics=4),
    "nvidia-a100": _Fabric(scale_up="nvlink3", link="infiniband-hdr", nics=8),
    "nvidia-a800": _Fabric(scale_up="nvlink3-a800", link="infiniband-hdr", nics=8),
    "nvidia-h100": _Fabric(scale_up="nvlink4", link="infiniband-ndr", nics=8),
    "nvidia-h200": _Fabric(scale_up="nvlink4", link="infiniband-ndr", nics=8),
    "nvidia-h800": _Fabric(scale_up="nvlink4-h800", link="infiniband-ndr", nics=8),
    "nvidia-b200": _Fabric(scale_up="nvlink5", link="infiniband-ndr", nics=8),
    "nvidia-b300": _Fabric(scale_up="nvlink5", link="infiniband-xdr", nics=8),
    "nvidia-gb200": _Fabric(scale_up="nvlink5-nvl72", link="infiniband-ndr", nics=8),
    "nvidia-gb300": _Fabric(scale_up="nvlink5-nvl72", link="infiniband-xdr", nics=8),
}
"""By the beginning of the chip's name: the maker's own eight-chip or rack-scale system."""

_RATES = {
    "25": "ethernet-25g",
    "100": "infiniband-edr",
    "200": "infiniband-hdr",
    "400": "infiniband-ndr",
    "800": "infiniband-xdr",
}
NVL72_CHIPS = 72


def cluster_of(reading: Reading) -> Cluster:
    """One pool of the stated chips. Raises UnscorableError for hardware that is not described."""
    hardware = reading.case.hardware
    chip = hardware.word("chip")
    if chip not in chip_names():
        raise UnscorableError(f"chip {chip or 'not stated'} has no profile")
    chips, per_node = hardware.need("n_chips"), hardware.size("chips_per_node") or 8
    fabric = next((f for name, f in _FABRICS.items() if chip.startswith(name)), None)
    if fabric is None:
        raise UnscorableError(f"links of {chip} not described")
    link, nics = _network(reading, fabric, per_node)
    pool = {
        "name": POOL,
        "island": POOL,
        "nodes": ceil(chips / per_node),
        "chips_per_node": per_node,
        "chip": chip,
        "scale_up": fabric.scale_up,
        "scale_out": {"link": link, "nics": nics},
    }
    domain = hardware.size("scale_up_domain") or (
        NVL72_CHIPS if fabric.scale_up.endswith("nvl72") else per_node
    )
    if domain > per_node:
        pool["scale_up_domain"] = ceil(domain / per_node) * per_node
    try:
        return load_cluster({"name": "case", "class_defaults": True, "pools": [pool]})
    except InputError as error:
        raise UnscorableError(f"cluster: {error.violations[0]}") from error


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
