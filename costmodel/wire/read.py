"""Checks raw documents against their wire schema: every violation at once, with place and fix."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from costmodel.errors import NOTHING, InputError, Violation, did_you_mean, suggest

AnyModel = TypeVar("AnyModel", bound=BaseModel)
Detail = Mapping[str, Any]

FIXES: Mapping[str, str] = MappingProxyType(
    {
        "missing": "add it",
        "extra_forbidden": "remove it, or correct its spelling",
        "literal_error": "choose one of {expected}",
        "greater_than": "write a number above {gt}",
        "greater_than_equal": "write a number of at least {ge}",
        "less_than_equal": "write a number of at most {le}",
        "finite_number": "write a finite number",
        "int_type": "write a whole number without quotes",
        "float_type": "write a number without quotes",
        "string_type": "write a text",
        "string_too_short": "write at least {min_length} character(s)",
        "string_too_long": "write at most {max_length} characters",
        "bool_type": "write true or false",
        "list_type": "write a list",
        "dict_type": "write `field: value` pairs",
        "model_type": "write `field: value` pairs",
        "model_attributes_type": "write a JSON object and say so with Content-Type",
        "json_invalid": "correct the JSON there",
    }
)


def validate(model: type[AnyModel], document: Mapping[str, object], *, name: str = "") -> AnyModel:
    """The document as `model`.

    Raises `InputError` with every violation, each under `name` and its JSON pointer; a field
    that does not exist comes with the nearest ones that do.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        found = violations_of(error.errors(), document, model)
        raise InputError(replace(v, field=f"{name}{v.field}") for v in found) from None


def violations_of(
    details: Sequence[Detail], document: object, model: type[BaseModel] | None = None
) -> list[Violation]:
    """Pydantic's errors about `document` as violations, one for each field.

    Where a field may be one of several things, pydantic reports an error for each of them.
    model: what the document was read as; the field nearest to an unknown one is suggested.
    """
    by_field: dict[str, list[Detail]] = {}
    for detail in details:
        by_field.setdefault(pointer_of(detail, document), []).append(detail)
    return [
        Violation(
            field=field,
            value=NOTHING if about[0]["type"] == "missing" else about[0].get("input"),
            rule=" or ".join(dict.fromkeys(rule_of(detail) for detail in about)),
            fix=" or ".join(dict.fromkeys(fix_of(detail, model) for detail in about)),
        )
        for field, about in by_field.items()
    ]


def pointer_of(detail: Detail, document: object) -> str:
    """Where in `document` an error is.

    Pydantic's location also names the alternatives that it tried; what is not in the document is
    left out, but for the name of a missing field.
    """
    *inner, last = detail["loc"] or ("",)
    pointer, value = "", document
    for part in inner:
        if has(value, part):
            pointer, value = f"{pointer}/{escape(str(part))}", cast("Any", value)[part]
    if last != "" and (detail["type"] == "missing" or has(value, last)):
        pointer = f"{pointer}/{escape(str(last))}"
    return pointer


def has(value: object, part: object) -> bool:
    """Whether `part` is a key or an index of `value`."""
    if isinstance(value, Mapping):
        return part in value
    if isinstance(value, list) and isinstance(part, int):
        return part < len(cast("list[object]", value))
    return False


def fix_of(detail: Detail, model: type[BaseModel] | None = None) -> str:
    """What to write instead."""
    kind, location = detail["type"], detail["loc"]
    if kind == "missing" and location:
        return f"add `{location[-1]}`"
    if kind == "extra_forbidden" and model is not None:
        known = fields_at(model, location[:-1])
        return did_you_mean(suggest(str(location[-1]), known), known)
    if kind == "model_type" and model is not None and location:
        inside = ", ".join(f"{name}: ..." for name in fields_at(model, location)[:4])
        return f"write its fields, as in `{{{inside}}}`"
    if kind == "value_error" and not _has_rule(detail):
        return _message(detail)
    return FIXES.get(kind, "correct it").format_map(detail.get("ctx") or {})


def rule_of(detail: Detail) -> str:
    """Pydantic's message as a rule: `must be ...` in lower case."""
    if detail["type"] == "missing":
        return "is required"
    if detail["type"] == "extra_forbidden":
        return "is not a field here"
    if detail["type"] == "value_error" and not _has_rule(detail):
        return "must have a unit"
    if detail["type"] in ("model_type", "dict_type"):
        return "must be fields with values"
    message = _message(detail)
    inner = message.removeprefix("Input should be ")
    if inner != message and not inner.startswith("must"):
        inner = f"must be {inner}"
    return inner[:1].lower() + inner[1:]


def _message(detail: Detail) -> str:
    return str(detail["msg"]).removeprefix("Value error, ")


def _has_rule(detail: Detail) -> bool:
    """Whether a validator of ours states a rule; the others say how to write a number."""
    return not _message(detail).startswith("write ")


def fields_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The fields that a document read as `model` has at a location."""
    found: list[type[BaseModel]] = [model]
    for part in location:
        if isinstance(part, str):
            inner = [c.model_fields[part].annotation for c in found if part in c.model_fields]
            found = [held for annotation in inner for held in _models_in(annotation)] or found
    fields = (item for each in found for item in each.model_fields.items())
    return list(dict.fromkeys(field.alias or name for name, field in fields))


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    arguments = get_args(annotation)
    is_union = get_origin(annotation) in (Union, UnionType)
    for argument in arguments if is_union or len(arguments) <= 2 else arguments[:1]:
        yield from _models_in(argument)


def escape(part: str) -> str:
    """One part of a JSON pointer (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1")
