"""Reads a YAML or JSON document from somebody we do not trust.

Refused before anything is built: too many bytes, anything but a plain file,
YAML anchors, aliases and tags, deep nesting, far too many nodes. Refused while
building: duplicate keys, keys that are not text, numbers that are not finite.
YAML scalars follow the core schema of YAML 1.2, so `no` and `2024-05-01` are
text and `1e-6` is a number.
"""

from __future__ import annotations

import io
import json
import math
import re
import stat
from collections.abc import Hashable
from pathlib import Path
from typing import Any, cast

import yaml

from costmodel.errors import InputError, UnsafeDocumentError

MAX_BYTES = 4 * 2**20
MAX_DEPTH = 32
MAX_YAML_NODES = 200_000


def load_document(
    source: Path | str | bytes, *, max_bytes: int = MAX_BYTES, infinite_as_null: bool = False
) -> dict[str, Any]:
    """The mapping in a file (`Path`) or in a text (`str` or UTF-8 `bytes`).

    A file ending in `.json`, or a text starting with a brace that parses as
    JSON, is JSON; everything else is YAML. infinite_as_null: read infinities and
    not-a-number as null instead of refusing them. Raises `UnsafeDocumentError` for a
    document that is refused unread and `InputError` for one that is malformed.
    """
    name = str(source) if isinstance(source, Path) else ""
    if isinstance(source, Path):
        text = _read_file(source, max_bytes)
    else:
        text = _as_text(source, max_bytes)
    value = _parse(text, name, is_json=name.endswith(".json"))
    if infinite_as_null:
        value = _finite_or_null(value)
    _check_tree(value, name)
    if not isinstance(value, dict):
        fix = "write `field: value` lines, or check that this is the file you meant"
        raise _refused(name, value, "must be a mapping of fields to values", fix)
    return cast("dict[str, Any]", value)


def _read_file(path: Path, max_bytes: int) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _malformed(str(path), "not a plain file", "give the path of a file")
        if status.st_size > max_bytes:
            raise _too_large(str(path), status.st_size, max_bytes)
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _malformed(str(path), reason, "give the path of a readable file") from error
    return _as_text(content, max_bytes, str(path))


def _as_text(content: str | bytes, max_bytes: int, name: str = "") -> str:
    if len(content) > max_bytes:
        raise _too_large(name, len(content), max_bytes)
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _malformed(name, f"byte {error.start} is not UTF-8", "save it as UTF-8") from error


def _parse(text: str, name: str, *, is_json: bool) -> object:
    if is_json:
        return _parse_json(text, name)
    if text.lstrip().startswith("{"):
        try:
            return _parse_json(text, name)
        except UnsafeDocumentError:
            raise
        except InputError:
            pass  # may still be a YAML flow mapping, whose own error is then the one to show
    return _parse_yaml(text, name)


def _parse_json(text: str, name: str) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(pairs)
        if len(result) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise _duplicate(name, key)
                seen.add(key)
        return result

    try:
        return json.loads(text, object_pairs_hook=unique)
    except RecursionError as error:
        raise _too_deep(name) from error
    except ValueError as error:
        raise _malformed(name, str(error), "correct the JSON there") from error


def _core_schema() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    number = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    rules = {
        "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
        "int": (r"[-+]?[0-9]{1,300}", list("-+0123456789")),
        "float": (rf"{number}|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.0123456789")),
    }
    resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for kind, (pattern, firsts) in rules.items():
        for first in firsts:
            rule = (f"tag:yaml.org,2002:{kind}", re.compile(rf"^(?:{pattern})$"))
            resolvers.setdefault(first, []).append(rule)
    return resolvers


class _Loader(yaml.CSafeLoader):
    """Core schema of YAML 1.2 without anything that builds more than data."""

    yaml_implicit_resolvers = _core_schema()

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node, _ in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            key: object = key_node.value
            if not isinstance(key, str) or key_node.tag != "tag:yaml.org,2002:str":
                where = _place(key_node.start_mark)
                raise _refused(where, key, "must be text to be a key", "put it in quotes")
            if key in seen:
                raise _duplicate(_place(key_node.start_mark), key)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float:
    text = loader.construct_scalar(node).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


class _NamedText(io.StringIO):
    """Text whose marks say which file they are in."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name


def _parse_yaml(text: str, name: str) -> object:
    try:
        _check_events(text, name)
        return yaml.load(_NamedText(text, name), Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = _position(mark) if mark is not None else ""
        problem = str(getattr(error, "problem", None) or error).splitlines()[0]
        if "nesting depth" in problem:
            raise _too_deep(name) from error
        raise _malformed(f"{name} {where}".strip(), problem, "correct the YAML there") from error


def _check_events(text: str, name: str) -> None:
    depth = nodes = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            _check_node_event(event, name)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _too_deep(name)
        if nodes > MAX_YAML_NODES:
            rule = f"must have at most {MAX_YAML_NODES} values as YAML"
            raise _unsafe(name, nodes, rule, "write it as JSON")


def _check_node_event(event: yaml.NodeEvent, name: str) -> None:
    where = f"{name} {_position(event.start_mark)}".strip()
    if event.anchor is not None:
        raise _unsafe(
            where, event.anchor, "must not use YAML anchors or aliases", "write the value out"
        )
    tag = getattr(event, "tag", None)
    if tag is not None and tag != "!":
        raise _unsafe(where, tag, "must not use YAML tags", "remove the tag")


def _check_tree(root: object, name: str) -> None:
    stack: list[tuple[object, int, str]] = [(root, 0, "")]
    while stack:
        value, depth, path = stack.pop()
        if depth > MAX_DEPTH:
            raise _too_deep(name)
        if isinstance(value, dict):
            children = cast("dict[str, object]", value).items()
            stack += [(child, depth + 1, f"{path}/{key}") for key, child in children]
        elif isinstance(value, list):
            items = enumerate(cast("list[object]", value))
            stack += [(child, depth + 1, f"{path}/{index}") for index, child in items]
        elif isinstance(value, float | int) and not _is_finite(value):
            where = f"{name} {path}".strip()
            raise _refused(where, value, "must be a finite number", "write a finite number")


def _finite_or_null(root: object) -> object:
    """The tree with null for every infinity and not-a-number; changes the containers in place."""
    stack: list[object] = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            mapping = cast("dict[str, object]", value)
            mapping |= {key: None for key, child in mapping.items() if _is_infinite(child)}
            stack += mapping.values()
        elif isinstance(value, list):
            items = cast("list[object]", value)
            items[:] = [None if _is_infinite(child) else child for child in items]
            stack += items
    return None if _is_infinite(root) else root


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _position(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _place(mark: Any) -> str:
    return f"{mark.name} {_position(mark)}".strip()


def _refused(where: str, value: object, rule: str, fix: str) -> InputError:
    return InputError.of(field=where, value=value, rule=rule, fix=fix)


def _unsafe(where: str, value: object, rule: str, fix: str) -> UnsafeDocumentError:
    return UnsafeDocumentError.of(field=where, value=value, rule=rule, fix=fix)


def _too_large(name: str, size: int, max_bytes: int) -> UnsafeDocumentError:
    return _unsafe(name, size, f"must have at most {max_bytes} bytes", "give a smaller document")


def _too_deep(name: str) -> UnsafeDocumentError:
    rule = f"must nest at most {MAX_DEPTH} levels"
    return _unsafe(name, "deeper nesting", rule, "flatten the document")


def _duplicate(where: str, key: str) -> InputError:
    return _refused(where, key, "must name every key once", f"remove one {key!r}")


def _malformed(where: str, problem: str, fix: str) -> InputError:
    return _refused(where, problem, "must be a readable document", fix)
