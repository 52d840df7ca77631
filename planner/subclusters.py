"""Parts of a cluster: without dead nodes, with nodes held back, with fewer nodes of a pool.

A part is read anew from its own document, which names the nodes that are left; so a plan on it
stays self-contained and its node numbers can be found.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from costmodel.errors import InputError, Violation, did_you_mean, suggest
from costmodel.hardware.read import load_cluster
from costmodel.hardware.values import Cluster, Pool

Document = dict[str, Any]


def node_names(pool: Pool) -> tuple[str, ...]:
    """What the nodes of a pool are called: their own names, or ``pool:0``, ``pool:1``, ..."""
    return pool.node_names or tuple(f"{pool.name}:{k}" for k in range(pool.nodes))


def without_nodes(cluster: Cluster, names: Sequence[str]) -> Cluster:
    """The cluster without these nodes, given by name or as ``pool:index``.

    Where a scale-up domain spans several nodes it goes as a whole. Raises InputError for every
    name that is no node, and when no node is left.
    """
    known = {name: (pool, k) for pool in cluster.pools for name, k in _called(pool)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(_no_node(name, known) for name in unknown)
    dead: dict[str, set[int]] = {}
    for name in names:
        pool, index = known[name]
        dead.setdefault(pool.name, set()).update(_domain(pool, index))
    kept = {
        pool.name: [k for k in range(pool.nodes) if k not in dead.get(pool.name, ())]
        for pool in cluster.pools
    }
    return with_nodes(cluster, kept)


def _called(pool: Pool) -> Iterator[tuple[str, int]]:
    for k, name in enumerate(node_names(pool)):
        yield name, k
        yield f"{pool.name}:{k}", k


def _domain(pool: Pool, node: int) -> range:
    """Nodes of the scale-up domain that holds this one."""
    size = max(1, pool.scale_up_domain // pool.chips_per_node)
    first = node // size * size
    return range(first, min(first + size, pool.nodes))


def _no_node(name: str, known: Collection[str]) -> Violation:
    return Violation(
        field="/exclude",
        value=name,
        rule="must be the name of a node, or pool:index",
        fix=did_you_mean(suggest(name, known), known),
    )


def holding_back(cluster: Cluster, nodes: Mapping[str, int]) -> Cluster:
    """The cluster without so many nodes of each pool, the last ones. Raises InputError."""
    faults = list(_held_back_faults(cluster, nodes))
    if faults:
        raise InputError(faults)
    return with_nodes(
        cluster, {p.name: range(p.nodes - nodes.get(p.name, 0)) for p in cluster.pools}
    )


def _held_back_faults(cluster: Cluster, nodes: Mapping[str, int]) -> Iterator[Violation]:
    pools = {pool.name: pool for pool in cluster.pools}
    for name, number in nodes.items():
        if name not in pools:
            fix = did_you_mean(suggest(name, pools), pools)
            yield Violation(field="/reserve", value=name, rule="must name a pool", fix=fix)
        elif not 0 <= number <= pools[name].nodes:
            rule = f"must be between 0 and the {pools[name].nodes} nodes of pool {name}"
            yield Violation(field="/reserve", value=number, rule=rule, fix="hold back fewer")


def with_nodes(cluster: Cluster, kept: Mapping[str, Iterable[int]]) -> Cluster:
    """The cluster with these nodes of its pools; pools without any are left out."""
    indices = {name: list(nodes) for name, nodes in kept.items()}
    if not any(indices.values()):
        raise InputError.of(
            field="/cluster",
            value=cluster.name,
            rule="must have a node that is left",
            fix="exclude or hold back fewer nodes",
        )
    if all(len(indices.get(pool.name, ())) == pool.nodes for pool in cluster.pools):
        return cluster
    document = dict(cast("Document", cluster.document))
    pools = cast("list[Document]", document["pools"])
    document["pools"] = [
        _part(entry, pool, indices[pool.name])
        for entry, pool in zip(pools, cluster.pools, strict=True)
        if indices.get(pool.name)
    ]
    islands = {pool.island for pool in cluster.pools if indices.get(pool.name)}
    return load_cluster(_joined(document, islands))


def _part(entry: Document, pool: Pool, nodes: list[int]) -> Document:
    names = node_names(pool)
    return entry | {"nodes": len(nodes), "node_names": [names[k] for k in nodes]}


def _joined(document: Document, islands: set[str]) -> Document:
    """The document with the links between islands that are left."""
    between = document.get("between_islands")
    if between is None:
        return document
    entries = cast("list[Document]", [between] if isinstance(between, dict) else between)
    left = [e for e in entries if e.get("islands") is None or set(e["islands"]) <= islands]
    rest = {key: value for key, value in document.items() if key != "between_islands"}
    return rest if len(islands) < 2 or not left else rest | {"between_islands": left}


def with_memory_margin(cluster: Cluster, margin: float) -> Cluster:
    """The cluster with this usable share of memory in all pools. Raises InputError."""
    if not 0.0 < margin <= 1.0:
        raise InputError.of(
            field="/memory_margin",
            value=margin,
            rule="must be a share above 0 and at most 1",
            fix="write 0.9 for nine tenths",
        )
    document = dict(cast("Document", cluster.document))
    pools = cast("list[Document]", document["pools"])
    document["pools"] = [entry | {"memory_margin": margin} for entry in pools]
    return load_cluster(document)


SIGNIFICANT_BITS = 4


def rounded(chips: int) -> int:
    """The chips without the last few, so that their number has few significant bits.

    Odd numbers have few divisors, and what they leave idle differs from one to the next; so a
    search may miss on 1,032 chips what it finds on 1,024.
    """
    spare = max(0, chips.bit_length() - SIGNIFICANT_BITS)
    return chips >> spare << spare
