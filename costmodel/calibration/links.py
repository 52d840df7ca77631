"""Fits a link's latency and its achievable bandwidth per collective to measured collectives.

The law is the cost model's own, ``t = latency(alpha) + volume / beta`` (see
``costmodel.network.collectives``): beta is the bus bandwidth of large messages, as nccl-tests
defines it, and a sheet states it as ``efficiency = beta / rate`` with the rate that a group of this
shape has at an efficiency of 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from costmodel.calibration.measurements import CollectivePoint, Number, Residuals
from costmodel.calibration.robust import Guess, fitted, residuals_of
from costmodel.hardware.values import COLLECTIVES, Chip, Link, Pool
from costmodel.model.placement import Collective
from costmodel.network.collectives import seconds
from costmodel.network.groups import GroupLink, group_link

FloatArray = NDArray[np.float64]

LARGE_BYTES = 2.0**22
"""Smaller payloads are left out where at least ``FEWEST`` larger ones of a collective were
measured. Libraries change protocols below, which one latency and one bandwidth do not follow: on
nine measured machines the median error from 8 MiB on is 5 % after a fit from 1 MiB on, 3 % from
here on."""

FEWEST = 4

LATENCY_SPREAD = 1.0
"""Standard deviation of the prior on the logarithm of the latency, about the sheet's."""

TELLING = 0.7
"""A latency is stated where the points bring the standard deviation of its logarithm below it."""

LATENCIES_S = (1e-8, 1e-2)
EFFICIENCIES = (1e-4, 4.0)
"""Bounds; the upper one is what a sheet may state."""

INSIDE_S = 2e-6
"""Latency of a hop inside a node whose link is not known; NVLink's."""

UNBOUND = 1e6
"""Efficiency of a scale-up link that is not to limit a group over the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFit:
    """What the points say of one link. latency: None where they do not tell it. used: points that
    the fit took. beyond: collectives whose bandwidth lies above what a sheet may state."""

    latency: Number | None
    efficiency: Mapping[Collective, Number]
    bus_bytes_per_s: Mapping[Collective, float]
    residuals: Residuals
    used: int
    beyond: tuple[Collective, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the measured groups lie on a link. nics: of a node. scale_up: the points ran inside a
    scale-up domain. inside: over a network, the link inside the nodes, where it is known."""

    link: Link
    scale_up: bool
    nics: int = 1
    inside: Link | None = None


def fit_link(points: Sequence[CollectivePoint], setting: Setting) -> LinkFit:
    """Latency and efficiencies of one link, by least squares on ln(predicted / measured).

    points: of one link; at least one.
    """
    used = chosen(points)
    ops = tuple(dict.fromkeys(point.collective for point in used))
    groups = np.array([group_terms(point, setting) for point in used])
    rates, steady_s, hops = groups.T
    index = np.array([1 + ops.index(point.collective) for point in used])
    target = np.log([point.seconds for point in used])

    def predicted(x: FloatArray) -> FloatArray:
        return log_seconds(used, rates * np.exp(x[index]), steady_s + hops * np.exp(x[0]))

    x, deviation = fitted(predicted, target, _guess(used, rates, ops, setting))
    counts = [sum(p.collective is op for p in used) for op in ops]
    efficiency = {
        op: Number(value=float(np.exp(x[i])), relative_sd=float(deviation[i]), points=counts[i - 1])
        for i, op in enumerate(ops, start=1)
    }
    latency = Number(value=float(np.exp(x[0])), relative_sd=float(deviation[0]), points=len(used))
    last = {op: rates[np.flatnonzero(index == i)[-1]] for i, op in enumerate(ops, start=1)}
    return LinkFit(
        latency=latency if deviation[0] < TELLING else None,
        efficiency=efficiency,
        bus_bytes_per_s={op: float(last[op] * efficiency[op].value) for op in ops},
        residuals=residuals_of(predicted(x) - target, [point.where for point in used]),
        used=len(used),
        beyond=tuple(op for op in ops if efficiency[op].value > EFFICIENCIES[1] * 0.999),
    )


def chosen(points: Sequence[CollectivePoint]) -> list[CollectivePoint]:
    """The large messages of each collective, or all of them where few are large."""
    found: list[CollectivePoint] = []
    for op in dict.fromkeys(point.collective for point in points):
        own = [point for point in points if point.collective is op]
        large = [point for point in own if point.payload_bytes >= LARGE_BYTES]
        found += sorted(large if len(large) >= FEWEST else own, key=lambda p: p.payload_bytes)
    return found


def group_terms(point: CollectivePoint, setting: Setting) -> tuple[float, float, float]:
    """What the cost model gives the point's group, as a function of the link's numbers.

    Bus bandwidth at an efficiency of 1, bytes/s of one rank; and of the latency of a step the part
    that does not depend on the link's, seconds, and how many times the link's comes to it.
    """
    still, slow = (_group(point, setting, latency_s) for latency_s in (0.0, 1.0))
    return still.bytes_per_s, still.latency_s, slow.latency_s - still.latency_s


def _group(point: CollectivePoint, setting: Setting, latency_s: float) -> GroupLink:
    link = replace(setting.link, efficiency=dict.fromkeys(COLLECTIVES, 1.0), latency_s=latency_s)
    inside = setting.inside or replace(setting.link, latency_s=INSIDE_S, multicast=False)
    wide = replace(inside, efficiency=dict.fromkeys(COLLECTIVES, UNBOUND))
    per_node = point.ranks if setting.scale_up else max(1, point.ranks // point.nodes)
    pool = Pool(
        name="measured",
        island="measured",
        nodes=1 if setting.scale_up else point.nodes,
        chips_per_node=per_node,
        chip=_NO_CHIP,
        scale_up=link if setting.scale_up else wide,
        scale_out=link,
        nics=setting.nics,
        scale_up_domain=per_node,
    )
    return group_link(pool, point.ranks, 1, point.collective)


def log_seconds(
    points: Sequence[CollectivePoint], bytes_per_s: FloatArray, step_latency_s: FloatArray
) -> FloatArray:
    """ln of the seconds that the cost model predicts for each point."""
    result = np.empty(len(points))
    for op in dict.fromkeys(point.collective for point in points):
        mine = [i for i, point in enumerate(points) if point.collective is op]
        payloads = np.array([points[i].payload_bytes for i in mine])
        ranks = np.array([float(points[i].ranks) for i in mine])
        result[mine] = seconds(op, payloads, ranks, bytes_per_s[mine], step_latency_s[mine])
    return np.log(result)


def _starts(
    points: Sequence[CollectivePoint], rates: FloatArray, ops: Sequence[Collective]
) -> list[float]:
    """ln of the share that the largest message of each collective reached, latency aside."""
    one = log_seconds(points, rates, np.zeros(len(points)))
    reached = one - np.log([point.seconds for point in points])
    best = {op: max(reached[i] for i, p in enumerate(points) if p.collective is op) for op in ops}
    return [float(best[op]) for op in ops]


def _guess(
    points: Sequence[CollectivePoint],
    rates: FloatArray,
    ops: Sequence[Collective],
    setting: Setting,
) -> Guess:
    prior = float(np.log(max(setting.link.latency_s, LATENCIES_S[0])))
    low, high = zip(LATENCIES_S, *[EFFICIENCIES] * len(ops), strict=True)
    return Guess(
        x=np.array([prior, *_starts(points, rates, ops)]),
        low=np.log(low),
        high=np.log(high),
        prior={0: (prior, LATENCY_SPREAD)},
    )


_NO_CHIP = Chip(
    name="measured",
    title="measured",
    vendor="",
    memory_bytes=None,
    memory_bytes_per_s=None,
    memory_fraction=None,
    peak_flop_per_s={},
    matmul_fraction={},
)
"""A group's bandwidth does not depend on its chips."""
