"""Checks a raw document against its wire schema and reports every violation at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from costmodel.errors import InputError, Violation, did_you_mean, suggest

_FIXES = {
    "int_type": "write a whole number without quotes",
    "float_type": "write a number without quotes",
    "string_type": "write text",
    "bool_type": "write true or false",
    "list_type": "write a list",
    "dict_type": "write `field: value` pairs",
    "model_type": "write `field: value` pairs",
}

AnyModel = TypeVar("AnyModel", bound=BaseModel)


def validate(model: type[AnyModel], document: Mapping[str, object], *, name: str = "") -> AnyModel:
    """The document as `model`.

    Raises `InputError` with every violation, each under `name` and its JSON pointer; a field
    that does not exist comes with the nearest ones that do.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise InputError(_violation(details, model, name) for details in error.errors()) from None


def _violation(details: Any, model: type[BaseModel], name: str) -> Violation:
    location: tuple[str | int, ...] = details["loc"]
    kind: str = details["type"]
    message = str(details["msg"])
    rule, fix = (
        message.replace("Input should", "should"),
        _FIXES.get(kind, "choose a value within that"),
    )
    if kind == "extra_forbidden":
        known = _fields_at(model, location[:-1])
        rule, fix = "is not a field here", did_you_mean(suggest(str(location[-1]), known), known)
    elif kind == "missing":
        rule, fix = "is required", f"add `{location[-1]}`"
    elif kind == "value_error":
        rule, fix = "must have a unit", message.removeprefix("Value error, ")
    pointer = "".join(f"/{part}" for part in location)
    value: object = "nothing" if kind == "missing" else details["input"]
    return Violation(field=f"{name}{pointer}", value=value, rule=rule, fix=fix)


def _fields_at(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    current: type[BaseModel] | None = model
    for part in location:
        if current is not None and isinstance(part, str) and part in current.model_fields:
            current = _inner_model(current.model_fields[part].annotation)
    return [] if current is None else list(current.model_fields)


def _inner_model(annotation: object) -> type[BaseModel] | None:
    for argument in get_args(annotation):
        inner = _inner_model(argument)
        if inner is not None:
            return inner
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None
