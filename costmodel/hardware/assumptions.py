"""Which assumed numbers of a cluster somebody relies on, as sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from costmodel.hardware.connection import HOST_STAGED_FRACTION
from costmodel.hardware.values import COLLECTIVES, PRECISIONS, Assumption, Cluster, Link, Pool

Collectives = Collection[str]

CLASS_DEFAULT = "class default"
"""How a sentence marks a number that nobody measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What of a cluster is used.

    pools: whose chips compute. precisions: in which they do. scale_up, scale_out: by pool, the
    collectives (or `p2p`) that run over its link. between: the same by pair of islands. staged:
    pairs of pools that meet through host memory.
    """

    pools: Collection[str]
    precisions: Collection[str]
    scale_up: Mapping[str, Collectives] = field(default_factory=dict[str, Collectives])
    scale_out: Mapping[str, Collectives] = field(default_factory=dict[str, Collectives])
    between: Mapping[frozenset[str], Collectives] = field(
        default_factory=dict[frozenset[str], Collectives]
    )
    staged: Collection[frozenset[str]] = ()


def whole(cluster: Cluster) -> Use:
    """The use of everything in every precision."""
    names = [pool.name for pool in cluster.pools]
    return Use(
        pools=names,
        precisions=PRECISIONS,
        scale_up=dict.fromkeys(names, COLLECTIVES),
        scale_out=dict.fromkeys(names, COLLECTIVES),
        between={frozenset(link.islands): COLLECTIVES for link in cluster.between},
    )


def assumptions_for(cluster: Cluster, use: Use) -> tuple[str, ...]:
    """The assumed numbers that this use of the cluster reads, a sentence for each field.

    A chip or link that several pools or islands share is said once, with all of them.
    """
    places: dict[tuple[str, str, str], list[str]] = {}
    for place, thing, assumed in _relied_on(cluster, use):
        by_field: dict[str, list[Assumption]] = {}
        for item in assumed:
            by_field.setdefault(item.field, []).append(item)
        for name, items in by_field.items():
            places.setdefault((thing, name, _values(items)), []).append(place)
    said = [
        f"{thing} ({', '.join(dict.fromkeys(where))}): {name} = {values} ({CLASS_DEFAULT})"
        for (thing, name, values), where in places.items()
    ]
    return (*said, *_wide_meshes(cluster, use), *_staged(use))


def _relied_on(cluster: Cluster, use: Use) -> Iterator[tuple[str, str, list[Assumption]]]:
    for pool in cluster.pools:
        place = f"pool {pool.name}"
        if pool.name in use.pools:
            yield place, f"chip {pool.chip.name}", _of_chip(pool, use.precisions)
        for link, users in ((pool.scale_up, use.scale_up), (pool.scale_out, use.scale_out)):
            yield place, f"link {link.name}", _of_link(link, users.get(pool.name, ()))
    for between in cluster.between:
        link, collectives = between.link, use.between.get(frozenset(between.islands), ())
        place = f"between {' and '.join(between.islands)}"
        yield place, f"link {link.name}", _of_link(link, collectives)


def _of_chip(pool: Pool, precisions: Collection[str]) -> list[Assumption]:
    """The owner's own measurement of a pool stands in for the share of the peak."""
    measured = pool.efficiency is not None or pool.flop_per_s is not None
    return [
        item
        for item in pool.chip.assumed
        if (not item.key or item.key in precisions)
        and not (measured and item.field == "matmul_fraction")
    ]


def _of_link(link: Link, collectives: Collectives) -> list[Assumption]:
    return [
        item for item in link.assumed if collectives and (not item.key or item.key in collectives)
    ]


def _values(items: list[Assumption]) -> str:
    keys: dict[str, list[str]] = {}
    for item in items:
        keys.setdefault(item.value, []).append(item.key)
    return "; ".join(
        f"{value} for {', '.join(names)}" if any(names) else value for value, names in keys.items()
    )


def _wide_meshes(cluster: Cluster, use: Use) -> list[str]:
    """Full meshes that are taken to join more chips than their ports reach."""
    return [
        f"link {pool.scale_up.name} (pool {pool.name}): a full mesh of {pool.scale_up.ports + 1} "
        f"chips is taken to join {pool.scale_up_domain}"
        for pool in cluster.pools
        if use.scale_up.get(pool.name) and pool.scale_up_domain > pool.scale_up.ports + 1 > 2
    ]


def _staged(use: Use) -> list[str]:
    return [
        f"pools {' and '.join(sorted(pair))}: {HOST_STAGED_FRACTION:g} of a link is left where "
        f"every byte goes through host memory ({CLASS_DEFAULT})"
        for pair in sorted(use.staged, key=sorted)
    ]
