"""Builds the pools of a cluster document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from costmodel.hardware.faults import Faults
from costmodel.hardware.own_sheets.read import Sheets
from costmodel.hardware.sheets.read import build_chip, build_link
from costmodel.hardware.values import DEFAULT_MEMORY_MARGIN, Chip, Link, Pool
from costmodel.units import Dimension
from haplan_client.schema.cluster import LinkOverrides, PoolDocument, PoolOverrides


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Where the numbers of chips and links come from. class_defaults: also from their class."""

    sheets: Sheets
    class_defaults: bool


def read_pool(
    document: PoolDocument, field: str, faults: Faults, *, numbers: Numbers
) -> Pool | None:
    """The pool at `field` of its document, None where a fault leaves no whole one."""
    own = document.overrides or PoolOverrides()
    chip = _chip(document, own, field, faults, numbers)
    up = _link(document.scale_up, own.scale_up, "scale_up", field, faults, numbers)
    out = _link(document.scale_out.link, own.scale_out, "scale_out", field, faults, numbers)
    price = faults.quantity(
        document.price_per_chip_hour, Dimension.USD, f"{field}/price_per_chip_hour"
    )
    flop_per_s = _throughput(document, field, faults)
    _check_shape(document, field, faults)
    if chip is None or up is None or out is None:
        return None
    return Pool(
        name=document.name,
        island=document.island,
        nodes=document.nodes,
        chips_per_node=document.chips_per_node,
        chip=chip,
        scale_up=up,
        scale_out=out,
        nics=document.scale_out.nics,
        memory_margin=document.memory_margin or DEFAULT_MEMORY_MARGIN,
        efficiency=document.measured.efficiency if document.measured else None,
        flop_per_s=flop_per_s,
        price_per_chip_hour=price,
        node_names=tuple(document.node_names or ()),
        scale_up_domain=document.scale_up_domain or document.chips_per_node,
    )


def check_names(pools: Sequence[PoolDocument], faults: Faults) -> None:
    """Every pool and every node has a name of its own."""
    names = Counter(pool.name for pool in pools)
    nodes = Counter(name for pool in pools for name in pool.node_names or ())
    for i, pool in enumerate(pools):
        if names[pool.name] > 1:
            rule, fix = "must be unique among the pools", "rename one of them"
            faults.refuse(f"/pools/{i}/name", pool.name, rule, fix)
        for name in sorted({n for n in pool.node_names or () if nodes[n] > 1}):
            rule, fix = "must name each node once", f"remove the second {name!r}"
            faults.refuse(f"/pools/{i}/node_names", name, rule, fix)


def read_link(
    name: str,
    own: LinkOverrides,
    field: str,
    faults: Faults,
    *,
    part: str = "",
    numbers: Numbers,
) -> Link | None:
    """The link with its owner's numbers, which stand at `field`; None for an unknown name.

    part: what its overrides are called in a pool, empty between islands.
    """
    if name not in numbers.sheets.link_names:
        return None
    with faults.collecting():
        return build_link(
            name,
            own,
            part=part,
            class_defaults=numbers.class_defaults,
            field=field,
            sheet=numbers.sheets.link(name),
        )
    return None


def _chip(
    document: PoolDocument,
    own: PoolOverrides,
    field: str,
    faults: Faults,
    numbers: Numbers,
) -> Chip | None:
    if document.chip not in numbers.sheets.chip_names:
        return None
    with faults.collecting():
        chip = build_chip(
            document.chip,
            own.chip,
            class_defaults=numbers.class_defaults,
            field=f"{field}/overrides/chip",
            sheet=numbers.sheets.chip(document.chip),
        )
        chip.memory()
        return chip
    return None


def _link(
    name: str, own: LinkOverrides, part: str, field: str, faults: Faults, numbers: Numbers
) -> Link | None:
    own_field = f"{field}/overrides/{part}"
    link = read_link(name, own, own_field, faults, part=part, numbers=numbers)
    if link is not None and (link.kind == "scale-up") != (part == "scale_up"):
        where = f"{field}/scale_up" if part == "scale_up" else f"{field}/scale_out/link"
        rule = f"must be a link for {part}, and {name} is for {link.kind}"
        faults.refuse(where, name, rule, "name another link; `haplan chips` lists the usual one")
    return link


def _throughput(document: PoolDocument, field: str, faults: Faults) -> float | None:
    measured = document.measured
    if measured is None:
        return None
    if (measured.efficiency is None) == (measured.throughput is None):
        given = measured.model_dump(exclude_none=True)
        rule, fix = "must hold one of efficiency and throughput", "keep one of the two"
        faults.refuse(f"{field}/measured", given, rule, fix)
    where = f"{field}/measured/throughput"
    return faults.quantity(measured.throughput, Dimension.FLOP_PER_S, where)


def _check_shape(document: PoolDocument, field: str, faults: Faults) -> None:
    names = document.node_names
    if names is not None and len(names) != document.nodes:
        rule = f"must name as many nodes as the pool has ({document.nodes})"
        faults.refuse(f"{field}/node_names", len(names), rule, "name every node or none")
    domain = document.scale_up_domain
    if domain is not None and domain % document.chips_per_node:
        rule = f"must be whole nodes of {document.chips_per_node} chips"
        fix = f"give a multiple of {document.chips_per_node}"
        faults.refuse(f"{field}/scale_up_domain", domain, rule, fix)
