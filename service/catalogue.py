"""The bundled chips and clusters as documents in SI units; null is a number nobody published."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from costmodel.hardware.own_sheets.read import BUNDLED, Sheets
from costmodel.hardware.read import cluster_names, load_cluster
from costmodel.hardware.sheets.read import build_chip
from costmodel.hardware.values import Cluster
from haplan_client.schema.cluster import ChipOverrides

Document = dict[str, Any]


def chip_documents(sheets: Sheets = BUNDLED) -> list[Document]:
    """All chips, those of one's own among them."""
    chips = [
        build_chip(name, ChipOverrides(), class_defaults=False, sheet=sheets.chip(name))
        for name in sheets.chip_names
    ]
    return [cast("Document", plain(chip)) for chip in chips]


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
