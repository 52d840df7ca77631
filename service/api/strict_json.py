"""Refuses a JSON body that gives a key twice: which of the two is meant?"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from fastapi import Depends, Request

from costmodel.errors import InputError, Violation
from costmodel.wire.read import escape

Pairs = list[tuple[str, Any]]


class _Object(dict[str, Any]):
    """A JSON object, and the keys that were given to it more than once."""

    repeated: tuple[str, ...] = ()


async def refuse_repeated_keys(request: Request) -> None:
    """Raise InputError with the place of every key that an object of the body repeats."""
    body = await request.body()
    found = [
        Violation(
            field=place,
            value=place.rsplit("/", 1)[-1],
            rule="must be given once",
            fix="remove one of the two",
        )
        for place in repeated_keys(body)
    ]
    if found:
        raise InputError(found)


ONE_OF_EACH_KEY = Depends(refuse_repeated_keys)
"""For routes that read a body."""


def repeated_keys(body: bytes) -> list[str]:
    """The pointers of repeated keys; none where the body is not JSON, which others find out."""
    seen: list[_Object] = []

    def objects(pairs: Pairs) -> _Object:
        result = _Object(pairs)
        if len(result) < len(pairs):
            times = Counter(name for name, _ in pairs)
            result.repeated = tuple(name for name, number in times.items() if number > 1)
            seen.append(result)
        return result

    try:
        root = json.loads(body, object_pairs_hook=objects)
    except (ValueError, RecursionError):
        return []
    return [*_places(root)] if seen else []


def _places(root: object) -> Iterator[str]:
    stack: list[tuple[str, object]] = [("", root)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, _Object):
            yield from (f"{place}/{escape(name)}" for name in value.repeated)
            stack += [(f"{place}/{escape(name)}", inner) for name, inner in value.items()]
        elif isinstance(value, list):
            items = enumerate(cast("list[object]", value))
            stack += [(f"{place}/{index}", inner) for index, inner in items]
