"""Reads clusters: a bundled name, a file, or a document already parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import cast

from costmodel.errors import InputError, UnknownNameError, Violation, did_you_mean, suggest
from costmodel.hardware.sheets.read import (
    build_chip,
    build_link,
    chip_names,
    link_names,
    load_chip,
    load_link,
    sheet_document,
    sheet_names,
    usual_scale_up,
)
from costmodel.hardware.values import (
    DEFAULT_MEMORY_MARGIN,
    Chip,
    Cluster,
    IslandLink,
    Link,
    Pool,
)
from costmodel.safe_document import load_document
from costmodel.units import Dimension, parse_quantity
from costmodel.wire.read import validate
from haplan_client.schema.cluster import (
    BetweenIslands,
    ClusterDocument,
    LinkOverrides,
    PoolDocument,
    PoolOverrides,
)

__all__ = [
    "chip_names",
    "cluster_names",
    "link_names",
    "load_chip",
    "load_cluster",
    "load_link",
    "usual_scale_up",
]


def cluster_names() -> tuple[str, ...]:
    """Names of the bundled clusters, sorted."""
    return sheet_names("clusters")


def load_cluster(source: str | Path | Mapping[str, object]) -> Cluster:
    """The cluster behind a bundled name, a path of a YAML or JSON file, or a parsed document.

    Raises `InputError` with every violation at once: unknown fields, names, units and numbers,
    islands that nothing joins. Raises `UnsafeDocumentError` for a file refused unread.
    """
    raw = _document(source)
    unknown = _unknown_names(raw)
    try:
        document = validate(ClusterDocument, raw)
    except InputError as error:
        raise InputError([*error.violations, *unknown]) from None
    reader = _Reader(class_defaults=document.class_defaults, violations=unknown)
    pools = [reader.pool(pool, f"/pools/{i}") for i, pool in enumerate(document.pools)]
    reader.check_names(document.pools)
    between = reader.between(document)
    if reader.violations:
        raise InputError(_distinct(reader.violations))
    return Cluster(
        name=document.name,
        pools=tuple(pool for pool in pools if pool is not None),
        between=between,
        assumptions=tuple(dict.fromkeys(reader.assumptions)),
        document=document.model_dump(mode="json", exclude_unset=True, exclude_none=True),
    )


def _document(source: str | Path | Mapping[str, object]) -> Mapping[str, object]:
    if isinstance(source, Mapping):
        return source
    if isinstance(source, str) and source in cluster_names():
        return sheet_document("clusters", source)
    if isinstance(source, Path):
        return load_document(source)
    if "/" in source or "." in source or Path(source).is_file():
        return load_document(Path(source))
    raise UnknownNameError(kind="cluster", name=source, known=cluster_names())


def _unknown_names(raw: Mapping[str, object]) -> list[Violation]:
    """Violations for the chips and links that are named but not known, whatever else is wrong."""
    named: list[tuple[str, str, object]] = []
    for path, pool in _entries(raw, "pools"):
        named.append(("chip", f"{path}/chip", pool.get("chip")))
        named.append(("link", f"{path}/scale_up", pool.get("scale_up")))
        for inner, scale_out in _entries(pool, "scale_out", path):
            named.append(("link", f"{inner}/link", scale_out.get("link")))
    for path, between in _entries(raw, "between_islands"):
        named.append(("link", f"{path}/link", between.get("link")))
    known = {"chip": chip_names(), "link": link_names()}
    return [
        violation
        for kind, field, name in named
        if isinstance(name, str) and name not in known[kind]
        for violation in UnknownNameError(
            kind=kind, name=name, known=known[kind], field=field
        ).violations
    ]


def _entries(
    raw: Mapping[str, object], key: str, path: str = ""
) -> list[tuple[str, Mapping[str, object]]]:
    value = raw.get(key)
    if isinstance(value, dict):
        return [(f"{path}/{key}", cast("dict[str, object]", value))]
    if not isinstance(value, list):
        return []
    items = enumerate(cast("list[object]", value))
    return [
        (f"{path}/{key}/{i}", cast("dict[str, object]", item))
        for i, item in items
        if isinstance(item, dict)
    ]


def _distinct(violations: list[Violation]) -> list[Violation]:
    return [v for i, v in enumerate(violations) if v not in violations[:i]]


class _Reader:
    """Builds the parts of one cluster and keeps every violation and assumption on the way."""

    def __init__(self, *, class_defaults: bool, violations: list[Violation]) -> None:
        self.violations = violations
        self.assumptions: list[str] = []
        self._class_defaults = class_defaults

    def pool(self, document: PoolDocument, field: str) -> Pool | None:
        own = document.overrides or PoolOverrides()
        chip = self._chip(document, own, field)
        scale_up = self._link(document.scale_up, own.scale_up, "scale_up", field)
        scale_out = self._link(document.scale_out.link, own.scale_out, "scale_out", field)
        price = self._price(document, field)
        flop_per_s = self._throughput(document, field)
        self._check_shape(document, field)
        if chip is None or scale_up is None or scale_out is None:
            return None
        return Pool(
            name=document.name,
            island=document.island,
            nodes=document.nodes,
            chips_per_node=document.chips_per_node,
            chip=chip,
            scale_up=scale_up,
            scale_out=scale_out,
            nics=document.scale_out.nics,
            memory_margin=document.memory_margin or DEFAULT_MEMORY_MARGIN,
            efficiency=document.measured.efficiency if document.measured else None,
            flop_per_s=flop_per_s,
            price_per_chip_hour=price,
            node_names=tuple(document.node_names or ()),
            scale_up_domain=document.scale_up_domain or document.chips_per_node,
        )

    def check_names(self, pools: list[PoolDocument]) -> None:
        names = Counter(pool.name for pool in pools)
        nodes = Counter(name for pool in pools for name in pool.node_names or ())
        for i, pool in enumerate(pools):
            if names[pool.name] > 1:
                rule, fix = "must be unique among the pools", "rename one of them"
                self._refuse(f"/pools/{i}/name", pool.name, rule, fix)
            for name in sorted({n for n in pool.node_names or () if nodes[n] > 1}):
                rule, fix = "must name each node once", f"remove the second {name!r}"
                self._refuse(f"/pools/{i}/node_names", name, rule, fix)

    def between(self, document: ClusterDocument) -> tuple[IslandLink, ...]:
        islands = list(dict.fromkeys(pool.island for pool in document.pools))
        links: dict[frozenset[str], IslandLink | None] = {}
        pairs = [(entry, i) for i, entry in enumerate(document.between_islands)]
        for entry, i in sorted(pairs, key=lambda pair: pair[0].islands is None):
            field = f"/between_islands/{i}"
            link = self._link_between(entry, field)
            for pair in self._pairs(entry, islands, links, field):
                links[frozenset(pair)] = link and IslandLink(
                    islands=pair,
                    link=link,
                    nics=entry.nics,
                    oversubscription=entry.oversubscription,
                )
        self._check_joined(islands, links)
        return tuple(link for link in links.values() if link is not None)

    def _pairs(
        self,
        entry: BetweenIslands,
        islands: list[str],
        taken: Mapping[frozenset[str], object],
        field: str,
    ) -> list[tuple[str, str]]:
        if entry.islands is None:
            return [p for p in combinations(islands, 2) if frozenset(p) not in taken]
        first, second = entry.islands
        unknown = [name for name in entry.islands if name not in islands]
        for name in unknown:
            fix = did_you_mean(suggest(name, islands), islands)
            self._refuse(f"{field}/islands", name, "must name an island of a pool", fix)
        if first == second or frozenset(entry.islands) in taken:
            rule, fix = "must join two islands, each pair once", "remove the entry"
            self._refuse(f"{field}/islands", entry.islands, rule, fix)
        return [] if unknown else [(first, second)]

    def _check_joined(self, islands: list[str], links: Mapping[frozenset[str], object]) -> None:
        apart = [pair for pair in combinations(islands, 2) if frozenset(pair) not in links]
        if apart:
            pairs = ", ".join(" and ".join(pair) for pair in apart)
            fix = "add `between_islands: {link: ethernet-25g, nics: 1}` or an entry for each pair"
            self._refuse("/between_islands", pairs, "must join every two islands", fix)

    def _chip(self, document: PoolDocument, own: PoolOverrides, field: str) -> Chip | None:
        if document.chip not in chip_names():
            return None
        with self._collecting():
            chip, notes = build_chip(
                document.chip,
                own.chip,
                class_defaults=self._class_defaults,
                field=f"{field}/overrides/chip",
            )
            chip.memory()
            self.assumptions += notes
            return chip
        return None

    def _link(self, name: str, own: LinkOverrides, part: str, field: str) -> Link | None:
        where = f"{field}/scale_up" if part == "scale_up" else f"{field}/scale_out/link"
        link = self._any_link(name, own, part, f"{field}/overrides/{part}")
        if link is not None and (link.kind == "scale-up") != (part == "scale_up"):
            rule = f"must be a link for {part}, and {name} is for {link.kind}"
            self._refuse(where, name, rule, "name another link; `haplan chips` lists the usual one")
        return link

    def _link_between(self, entry: BetweenIslands, field: str) -> Link | None:
        own = entry.overrides or LinkOverrides()
        where = f"{field}/link"
        link = self._any_link(entry.link, own, "", f"{field}/overrides")
        if link is not None and link.kind == "scale-up":
            rule, fix = "must be a network", "name a network such as ethernet-25g"
            self._refuse(where, entry.link, rule, fix)
        return link

    def _any_link(self, name: str, own: LinkOverrides, part: str, own_field: str) -> Link | None:
        if name not in link_names():
            return None
        with self._collecting():
            link, notes = build_link(
                name, own, part=part, class_defaults=self._class_defaults, field=own_field
            )
            self.assumptions += notes
            return link
        return None

    def _price(self, document: PoolDocument, field: str) -> float | None:
        where = f"{field}/price_per_chip_hour"
        return self._quantity(document.price_per_chip_hour, Dimension.USD, where)

    def _throughput(self, document: PoolDocument, field: str) -> float | None:
        measured = document.measured
        if measured is None:
            return None
        if (measured.efficiency is None) == (measured.throughput is None):
            given = measured.model_dump(exclude_none=True)
            rule, fix = "must hold one of efficiency and throughput", "keep one of the two"
            self._refuse(f"{field}/measured", given, rule, fix)
        where = f"{field}/measured/throughput"
        return self._quantity(measured.throughput, Dimension.FLOP_PER_S, where)

    def _quantity(self, text: str | None, dimension: Dimension, field: str) -> float | None:
        with self._collecting():
            return None if text is None else parse_quantity(text, dimension, field=field)
        return None

    def _check_shape(self, document: PoolDocument, field: str) -> None:
        names = document.node_names
        if names is not None and len(names) != document.nodes:
            rule = f"must name as many nodes as the pool has ({document.nodes})"
            self._refuse(f"{field}/node_names", len(names), rule, "name every node or none")
        domain = document.scale_up_domain
        if domain is not None and domain % document.chips_per_node:
            rule = f"must be whole nodes of {document.chips_per_node} chips"
            fix = f"give a multiple of {document.chips_per_node}"
            self._refuse(f"{field}/scale_up_domain", domain, rule, fix)

    def _refuse(self, field: str, value: object, rule: str, fix: str) -> None:
        self.violations.append(Violation(field=field, value=value, rule=rule, fix=fix))

    @contextmanager
    def _collecting(self) -> Generator[None]:
        try:
            yield
        except InputError as error:
            self.violations += error.violations
