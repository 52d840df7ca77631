"""Pins as they are written, ``NAME=VALUE[,VALUE...]``, and what they mean."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from costmodel.errors import InputError, Violation, did_you_mean, suggest
from costmodel.hardware.values import Cluster
from costmodel.job import RECOMPUTE_MODES
from planner.pins import DEGREES, NO_PINS, Pins

NAMES = (
    *(name.replace("_", "-") for name in DEGREES),
    "stages",
    "vp",
    "pool-order",
    "equal-tp",
    "templates",
    "memory-margin",
    "reserve",
)
FIELD = "/pins"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Pins on layouts, and what changes the cluster: nodes held back and the usable memory."""

    pins: Pins = NO_PINS
    reserve: dict[str, int] = field(default_factory=dict[str, int])
    memory_margin: float | None = None


class _WrongPinError(ValueError):
    """A value that does not fit its pin; the text says what would."""


def read_pins(texts: Sequence[str], cluster: Cluster) -> Fixed:
    """What the pins fix. Raises InputError for every faulty one."""
    fixed, faults = Fixed(), list[Violation]()
    for text in texts:
        name, _, value = text.partition("=")
        if name not in NAMES:
            fix = did_you_mean(suggest(name, NAMES), NAMES)
            faults.append(_fault(text, "must be NAME=VALUE with a known name", fix))
            continue
        try:
            fixed = _with(fixed, name, value, cluster)
        except _WrongPinError as error:
            faults.append(_fault(text, str(error), f"write as in {name}={EXAMPLES[name]}"))
    if faults:
        raise InputError(faults)
    return fixed


def _fault(text: str, rule: str, fix: str) -> Violation:
    return Violation(field=FIELD, value=text, rule=rule, fix=fix)


EXAMPLES = {
    **{name.replace("_", "-"): "4,8" for name in DEGREES},
    "zero": "1",
    "recompute": "none,full",
    "stages": "8,16",
    "vp": "2,4",
    "pool-order": "ib,roce",
    "equal-tp": "true",
    "templates": "2",
    "memory-margin": "0.9",
    "reserve": "ib:2",
}


def _with(fixed: Fixed, name: str, value: str, cluster: Cluster) -> Fixed:
    read = READERS.get(name)
    if read is not None:
        return read(fixed, value, cluster)
    own = name.replace("-", "_")
    values = _modes(value) if own == "recompute" else _numbers(value, 0 if own == "zero" else 1)
    degrees = dict(fixed.pins.degrees) | {own: values}
    return replace(fixed, pins=replace(fixed.pins, degrees=degrees))


def _numbers(value: str, least: int) -> frozenset[int]:
    parts = value.split(",")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise _WrongPinError("must list whole numbers")
    numbers = frozenset(int(part) for part in parts)
    if min(numbers) < least:
        raise _WrongPinError(f"must list numbers from {least} on")
    return numbers


def _modes(value: str) -> frozenset[str]:
    modes = frozenset(value.split(","))
    if not modes <= set(RECOMPUTE_MODES):
        raise _WrongPinError(f"must list modes of {', '.join(RECOMPUTE_MODES)}")
    return modes


def _stages(fixed: Fixed, value: str, cluster: Cluster) -> Fixed:
    del cluster
    return replace(fixed, pins=replace(fixed.pins, stages=_numbers(value, 1)))


def _chunks(fixed: Fixed, value: str, cluster: Cluster) -> Fixed:
    del cluster
    return replace(fixed, pins=replace(fixed.pins, chunks=_numbers(value, 1)))


def _pool_order(fixed: Fixed, value: str, cluster: Cluster) -> Fixed:
    order = tuple(value.split(","))
    known = [pool.name for pool in cluster.pools]
    if not set(order) <= set(known) or len(set(order)) < len(order):
        raise _WrongPinError(f"must list pools of the cluster, each once: {', '.join(known)}")
    return replace(fixed, pins=replace(fixed.pins, pool_order=order))


def _equal_tp(fixed: Fixed, value: str, cluster: Cluster) -> Fixed:
    del cluster
    if value not in ("true", "false"):
        raise _WrongPinError("must be true or false")
    return replace(fixed, pins=replace(fixed.pins, equal_tp=value == "true"))


def _templates(fixed: Fixed, value: str, cluster: Cluster) -> Fixed:
    del cluster
    return replace(fixed, pins=replace(fixed.pins, templates=max(_numbers(value, 1))))


def _margin(fixed: Fixed, value: str, cluster: Cluster) -> Fixed:
    del cluster
    try:
        return replace(fixed, memory_margin=float(value))
    except ValueError:
        raise _WrongPinError("must be a share of the memory") from None


def _reserve(fixed: Fixed, value: str, cluster: Cluster) -> Fixed:
    del cluster
    held = dict(fixed.reserve)
    for pool, number in _pairs(value):
        held[pool] = held.get(pool, 0) + number
    return replace(fixed, reserve=held)


def _pairs(value: str) -> Iterator[tuple[str, int]]:
    for part in value.split(","):
        pool, _, number = part.rpartition(":")
        if not pool:
            raise _WrongPinError("must list POOL:NODES")
        yield pool, max(_numbers(number, 0))


READERS: dict[str, Callable[[Fixed, str, Cluster], Fixed]] = {
    "stages": _stages,
    "vp": _chunks,
    "pool-order": _pool_order,
    "equal-tp": _equal_tp,
    "templates": _templates,
    "memory-margin": _margin,
    "reserve": _reserve,
}
