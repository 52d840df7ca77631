"""Plain data as the frozen values it was written from, with every fault by its pointer."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType, NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from costmodel.errors import Violation

Record = TypeVar("Record")

KINDS: Mapping[object, str] = MappingProxyType(
    {
        str: "a text",
        float: "a number",
        int: "a whole number",
        bool: "true or false",
        tuple: "a list",
        NoneType: "null",
    }
)
FIX = "write it as `haplan plan` does, or plan again"


def record_faults(kind: type[Any], value: object, place: str) -> Iterator[Violation]:
    """What stands in the way of `value` as the dataclass `kind`."""
    if not isinstance(value, Mapping):
        yield fault(place, value, "must be a mapping")
        return
    found, hints = cast("Mapping[str, object]", value), get_type_hints(kind)
    for item in fields(kind):
        where = f"{place}/{item.name}"
        if item.name in found:
            yield from faults(hints[item.name], found[item.name], where)
        elif item.default is MISSING and item.default_factory is MISSING:
            yield fault(where, "nothing", "is required")
    for name in sorted(map(str, found.keys() - hints.keys())):
        yield fault(f"{place}/{name}", found.get(name), "is not a field here")


def record(kind: type[Record], value: Mapping[str, Any]) -> Record:
    """A mapping without faults as the dataclass `kind`."""
    return kind(**{name: frozen(item) for name, item in value.items()})


def faults(hint: Any, value: object, place: str) -> Iterator[Violation]:
    """What stands in the way of `value` as something of type `hint`."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if not any(next(faults(each, value, place), None) is None for each in inner):
            yield fault(place, value, f"must be {' or '.join(KINDS[each] for each in inner)}")
    elif origin is tuple:
        yield from _list_faults(inner, value, place)
    elif origin is not None and issubclass(origin, Mapping):
        yield from _mapping_faults(inner[1], value, place)
    elif not _is(hint, value):
        yield fault(place, value, f"must be {KINDS[hint]}")


def _list_faults(inner: tuple[Any, ...], value: object, place: str) -> Iterator[Violation]:
    if not isinstance(value, list):
        yield fault(place, value, "must be a list")
        return
    items = cast("list[object]", value)
    hints = [inner[0]] * len(items) if inner[-1] is Ellipsis else list(inner)
    if len(hints) != len(items):
        yield fault(place, items, f"must hold {len(hints)} values")
        return
    for index, (hint, item) in enumerate(zip(hints, items, strict=True)):
        yield from faults(hint, item, f"{place}/{index}")


def _mapping_faults(hint: Any, value: object, place: str) -> Iterator[Violation]:
    if not isinstance(value, Mapping):
        yield fault(place, value, "must be a mapping")
        return
    for name, item in cast("Mapping[str, object]", value).items():
        yield from faults(hint, item, f"{place}/{name}")


def _is(hint: Any, value: object) -> bool:
    if hint in (object, Any):
        return True
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, int | float if hint is float else hint)


def frozen(value: object) -> object:
    """Lists as tuples and mappings read-only, all the way down."""
    if isinstance(value, list):
        return tuple(frozen(item) for item in cast("list[object]", value))
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return MappingProxyType({name: frozen(item) for name, item in items})
    return value


def fault(place: str, value: object, rule: str) -> Violation:
    """One fault of a plan; what was edited can be planned again."""
    return Violation(field=place, value=value, rule=rule, fix=FIX)
