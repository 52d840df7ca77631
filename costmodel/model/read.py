"""Reads a model from a name, a file or a document into a ModelGraph."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from costmodel.errors import InputError, UnknownNameError, did_you_mean, suggest
from costmodel.model.config import Config
from costmodel.model.document import SCHEMA, graph_from
from costmodel.model.family import Family, families, family_of_type
from costmodel.model.graph import ModelGraph
from costmodel.model.rules import check_graph
from costmodel.safe_document import load_document
from costmodel.wire.read import validate
from haplan_client.schema.graph import GraphDocument

_TEXT_ONLY = "only text_config was read: what stands beside the language model is left out"

_REFUSED = {
    "minimax_m3": "two of its keys give different depths of multi-token prediction, and no "
    "independent parameter count exists to check a reader against",
    "step3p7": "its config leaves out the heads of window layers and the output gates, and no "
    "independent parameter count exists to check a reader against",
}
"""Model types that are known and not read, with the reason."""

_CATALOGUE = Path(__file__).parent / "catalogue"


@cache
def model_names() -> tuple[str, ...]:
    """Short names of the bundled models."""
    return tuple(sorted(path.stem for path in _CATALOGUE.glob("*.json")))


def catalogue_config(name: str) -> dict[str, Any]:
    """The bundled config of that name."""
    if name not in model_names():
        raise UnknownNameError(kind="model", name=name, known=model_names())
    return json.loads((_CATALOGUE / f"{name}.json").read_text(encoding="utf-8"))


def load_model(
    source: str | Path | Mapping[str, Any], *, as_family: str | None = None
) -> ModelGraph:
    """The graph of a model.

    source: a name of ``model_names()``; the path of a Hugging Face ``config.json``, of a directory
        with one, or of a haplan graph (JSON or YAML); or a mapping, ``{"config": {...}}`` or
        ``{"graph": {...}}``.
    as_family: reads the config by this family's rules, whatever its ``model_type`` says.

    Raises InputError with every violation.
    """
    if isinstance(source, Mapping):
        return _from_mapping(source, as_family)
    if isinstance(source, str) and source in model_names():
        return read_config(catalogue_config(source), name=source, as_family=as_family)
    path = _file_of(Path(source))
    if path is None:
        raise _no_such_model(str(source))
    document = load_document(path, infinite_as_null=True)  # Mamba's time step may be infinite
    if document.get("schema") == SCHEMA:
        return read_graph(document)
    name = path.parent.name if path.stem == "config" else path.stem
    return read_config(document, name=name, as_family=as_family)


def read_config(
    document: Mapping[str, Any], *, name: str = "", as_family: str | None = None
) -> ModelGraph:
    """The graph of a Hugging Face config.

    A family asked for by name may be one for language models only: then it reads ``text_config``.
    """
    family, config = _family(document, as_family), Config(document, name=name)
    nested = config.has("text_config") and not config.has("hidden_size")
    if as_family is None or not nested or document.get("model_type") in family.model_types:
        return family.build(config)
    graph = family.build(config.text())
    return replace(graph, assumptions=(*graph.assumptions, _TEXT_ONLY))


def read_graph(document: Mapping[str, Any]) -> ModelGraph:
    """The graph of a haplan graph document."""
    validate(GraphDocument, document)
    graph = graph_from(document)
    check_graph(graph)
    return graph


def _from_mapping(source: Mapping[str, Any], as_family: str | None) -> ModelGraph:
    keys = [key for key in ("config", "graph") if isinstance(source.get(key), Mapping)]
    if len(keys) != 1 or len(source) != 1:
        rule = "must have exactly one of `config` and `graph`"
        fix = 'write {"config": {...}} or {"graph": {...}}'
        raise InputError.of(field="", value=sorted(map(str, source)), rule=rule, fix=fix)
    if keys == ["graph"]:
        return read_graph(source["graph"])
    return read_config(source["config"], as_family=as_family)


def _file_of(path: Path) -> Path | None:
    """The config at a path or in the folder there, if there is one."""
    try:
        path = path / "config.json" if path.is_dir() else path
        return path if path.is_file() else None
    except (OSError, ValueError):  # a name too long, a folder that may not be entered
        return None


def _family(document: Mapping[str, Any], as_family: str | None) -> Family:
    if as_family is not None:
        if as_family in families():
            return families()[as_family]
        known = family_of_type()
        if as_family in known:
            return known[as_family]
        raise UnknownNameError(kind="family", name=as_family, known=families(), field="/as_family")
    given = document.get("model_type")
    model_type = "" if given is None else str(given)
    if model_type in family_of_type():
        return family_of_type()[model_type]
    rule = "must be a model type that haplan reads"
    if model_type in _REFUSED:
        rule += f" ({_REFUSED[model_type]})"
    value = "nothing" if given is None else given
    raise InputError.of(field="/model_type", value=value, rule=rule, fix=_offer(model_type))


def _offer(model_type: str) -> str:
    near = [family_of_type()[name].name for name in suggest(model_type, family_of_type())]
    families_near = " or ".join(f"--as-family {name}" for name in dict.fromkeys(near))
    known = ", ".join(sorted(families()))
    return (
        f"if its layers are those of a known family read it with {families_near or '--as-family F'}"
        f" (F one of {known}), or give the block graph itself"
    )


def _no_such_model(source: str) -> InputError:
    fix = did_you_mean(suggest(source, model_names()), model_names())
    rule = "must be a bundled model name, a config.json, its directory or a haplan graph"
    return InputError.of(field="model", value=source, rule=rule, fix=fix)
