"""Builds what joins the islands of a cluster document."""

from __future__ import annotations

from collections.abc import Container
from itertools import combinations

from costmodel.errors import did_you_mean, suggest
from costmodel.hardware.faults import Faults
from costmodel.hardware.pools.read import Numbers, read_link
from costmodel.hardware.values import IslandLink, Link
from haplan_client.schema.cluster import BetweenIslands, ClusterDocument, LinkOverrides

Pair = frozenset[str]


def read_between(
    document: ClusterDocument, faults: Faults, numbers: Numbers
) -> tuple[IslandLink, ...]:
    """One link for every two islands; entries for one pair come before the entry for all."""
    islands = list(dict.fromkeys(pool.island for pool in document.pools))
    links: dict[Pair, IslandLink | None] = {}
    entries = sorted(enumerate(document.between_islands), key=lambda item: item[1].islands is None)
    for i, entry in entries:
        field = f"/between_islands/{i}"
        link = _link(entry, field, faults, numbers)
        for pair in _pairs(entry, islands, links, field, faults):
            links[frozenset(pair)] = link and IslandLink(
                islands=pair, link=link, nics=entry.nics, oversubscription=entry.oversubscription
            )
    _check_joined(islands, links, faults)
    return tuple(link for link in links.values() if link is not None)


def _pairs(
    entry: BetweenIslands, islands: list[str], taken: Container[Pair], field: str, faults: Faults
) -> list[tuple[str, str]]:
    if entry.islands is None:
        return [p for p in combinations(islands, 2) if frozenset(p) not in taken]
    first, second = entry.islands
    unknown = [name for name in entry.islands if name not in islands]
    for name in unknown:
        fix = did_you_mean(suggest(name, islands), islands)
        faults.refuse(f"{field}/islands", name, "must name an island of a pool", fix)
    if first == second or frozenset(entry.islands) in taken:
        rule, fix = "must join two islands, each pair once", "remove the entry"
        faults.refuse(f"{field}/islands", entry.islands, rule, fix)
    return [] if unknown else [(first, second)]


def _link(entry: BetweenIslands, field: str, faults: Faults, numbers: Numbers) -> Link | None:
    own = entry.overrides or LinkOverrides()
    own_field = f"{field}/overrides"
    link = read_link(entry.link, own, own_field, faults, numbers=numbers)
    if link is not None and link.kind == "scale-up":
        rule, fix = "must be a network", "name a network such as ethernet-25g"
        faults.refuse(f"{field}/link", entry.link, rule, fix)
    return link


def _check_joined(islands: list[str], links: Container[Pair], faults: Faults) -> None:
    apart = [pair for pair in combinations(islands, 2) if frozenset(pair) not in links]
    if apart:
        pairs = ", ".join(" and ".join(pair) for pair in apart)
        fix = "add `between_islands: {link: ethernet-25g, nics: 1}` or an entry for each pair"
        faults.refuse("/between_islands", pairs, "must join every two islands", fix)
