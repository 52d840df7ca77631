"""Reads the bundled software profiles."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any

from costmodel.errors import InputError
from costmodel.hardware.sheets.read import sheet_document, sheet_names
from costmodel.software.values import Efficiency, SoftwareProfile

FOLDER = "software"
DEFAULT = "default"
"""The profile of a stack that has none of its own; every other one is based on it."""

NOT_STACKS = frozenset({"intervals"})
"""Files of the folder that are no profiles."""


@cache
def profile_names() -> tuple[str, ...]:
    """Names of the bundled profiles, sorted."""
    return tuple(name for name in sheet_names(FOLDER) if name not in NOT_STACKS)


@cache
def software_profile(name: str) -> SoftwareProfile:
    """The profile of a stack; the default one, under its own name, for an unknown stack."""
    known = name if name in profile_names() else DEFAULT
    document = sheet_document(FOLDER, known)
    stated = {key: entry["value"] for key, entry in document.get("efficiency", {}).items()}
    _check(known, stated, whole=known == DEFAULT)
    fitted = tuple(key for key, e in document.get("efficiency", {}).items() if e.get("fitted"))
    runs: Mapping[str, object] = document.get("runs", {})
    if known == DEFAULT:
        efficiency = Efficiency(**stated)
    else:
        base = software_profile(DEFAULT)
        efficiency = replace(base.efficiency, **stated)
        runs = {**base.runs, **runs}
    return SoftwareProfile(
        name=known,
        title=str(document["title"]),
        efficiency=efficiency,
        runs=MappingProxyType(dict(runs)),
        fitted=fitted,
    )


@cache
def half_width(*, known_stack: bool, tuned: bool, class_defaults: bool) -> float:
    """Relative half-width of the 90 % interval in one regime (``intervals.yaml``)."""
    document = sheet_document(FOLDER, "intervals")
    regime = document["known" if known_stack else "unknown"]
    width = float(regime["tuned" if tuned else "untuned"])
    return width * float(document["class_defaults"]) if class_defaults else width


def _check(name: str, stated: Mapping[str, Any], *, whole: bool) -> None:
    known = {field.name for field in fields(Efficiency)}
    wrong = sorted(set(stated) - known | (known - set(stated) if whole else set()))
    if wrong:
        raise InputError.of(
            field=f"software/{name}.yaml: efficiency",
            value=", ".join(wrong),
            rule="must name constants of the formulas, all of them in the default profile",
            fix="correct the names",
        )
