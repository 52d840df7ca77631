"""Profiles of a user's own on the command line: sheets of a folder, constants of a stack."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from costmodel.errors import InputError, UnknownNameError, Violation
from costmodel.hardware.own_sheets.read import BUNDLED, CHIPS, LINKS, Sheets, read_sheets
from costmodel.hardware.read import cluster_source
from costmodel.safe_document import load_document
from costmodel.software.read import profile_names, read_constants

Document = dict[str, Any]

OPTION = "--profiles"


def sheet_documents(folder: Path) -> dict[str, dict[str, Document]]:
    """The sheets in ``chips`` and ``links`` of a folder, by name.

    Raises InputError with every faulty one, and for a folder without any.
    """
    found: dict[str, dict[str, Document]] = {}
    faults: list[Violation] = []
    for kind in (CHIPS, LINKS):
        for path in sorted((folder / kind).glob("*.yaml")):
            try:
                found.setdefault(kind, {})[path.stem] = load_document(path)
            except InputError as error:
                faults += error.violations
    if not found and not faults:
        fix = "give the folder that `haplan calibrate` wrote"
        rule = "must hold chips/*.yaml or links/*.yaml"
        faults.append(Violation(field=OPTION, value=str(folder), rule=rule, fix=fix))
    if faults:
        raise InputError(faults)
    read_sheets(found, name=str(folder))
    return found


def sheets_in(folder: Path | None) -> Sheets:
    """The sheets of a folder, if there is one. Raises InputError with every fault."""
    return BUNDLED if folder is None else read_sheets(sheet_documents(folder), name=str(folder))


def with_profiles(cluster: str, sheets: Mapping[str, Mapping[str, Document]]) -> Document:
    """The document of a cluster with those of the sheets that it names.

    Sheets that its own document holds come first. Raises InputError where there is no document.
    """
    document = {**cluster_source(cluster)}
    given = document.get("sheets")
    own: Mapping[str, Document] = (
        cast("Mapping[str, Document]", given)
        if isinstance(given, Mapping)
        else dict[str, Document]()
    )
    words = {word for part in ("pools", "between_islands") for word in _words(document.get(part))}
    document["sheets"] = {
        kind: {**{n: s for n, s in sheets.get(kind, {}).items() if n in words}, **own.get(kind, {})}
        for kind in (CHIPS, LINKS)
    }
    return document


def _words(value: object) -> set[str]:
    """Every text in a document: among them the names of its chips and links."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, object]", value).values()
    else:
        inner = cast("list[object]", value) if isinstance(value, list) else []
    return {word for one in inner for word in _words(one)}


def software_named(text: str) -> str | dict[str, float | bool]:
    """A bundled stack's name as it is, the constants of a profile file.

    Raises InputError for neither.
    """
    if text == "auto" or text in profile_names():
        return text
    path = Path(text)
    if path.suffix in (".yaml", ".yml", ".json") or path.exists():
        return read_constants(path)
    raise UnknownNameError(
        kind="software profile", name=text, known=profile_names(), field="--software"
    )
