"""The bundled chips and clusters as documents in SI units; null is a number nobody published."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from costmodel.hardware.read import chip_names, cluster_names, load_chip, load_cluster
from costmodel.hardware.values import Cluster

Document = dict[str, Any]


def chip_documents() -> list[Document]:
    """All chips."""
    return [cast("Document", plain(load_chip(name))) for name in chip_names()]


def cluster_documents() -> list[Document]:
    """All clusters, short."""
    return [cluster_document(load_cluster(name)) for name in cluster_names()]


def cluster_document(cluster: Cluster) -> Document:
    """A cluster: what it holds, and the document that describes it whole."""
    return {
        "name": cluster.name,
        "num_chips": cluster.num_chips,
        "chips": cluster.chip_counts(),
        "islands": list(cluster.islands),
        "pools": [
            {
                "name": pool.name,
                "island": pool.island,
                "chip": pool.chip.name,
                "nodes": pool.nodes,
                "chips_per_node": pool.chips_per_node,
                "scale_up": pool.scale_up.name,
                "scale_out": pool.scale_out.name,
                "nics": pool.nics,
            }
            for pool in cluster.pools
        ],
        "document": plain(cluster.document),
    }


def plain(value: object) -> object:
    """A value of ours as JSON types."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        mapping = cast("Mapping[object, object]", value)
        return {str(key): plain(item) for key, item in mapping.items()}
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in cast("frozenset[object]", value))
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("list[object]", value)]
    return value
