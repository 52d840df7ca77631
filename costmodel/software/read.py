"""Reads software profiles: the bundled ones, and files of a user's own."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from costmodel.errors import InputError, UnknownNameError, Violation
from costmodel.hardware.sheets.read import sheet_document, sheet_names
from costmodel.safe_document import load_document
from costmodel.software.values import CONSTANTS, Efficiency, SoftwareProfile

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


SECTIONS = ("title", "runs", "fit", "efficiency")
"""Of a software profile."""


def read_constants(path: Path) -> dict[str, float | bool]:
    """The constants that the profile in a file states, by name.

    Raises InputError with every violation, each by its place in the file, and for sections that no
    profile has: nothing that a file says is passed over.
    """
    document = load_document(path)
    entries = document.get("efficiency")
    if not isinstance(entries, dict):
        raise InputError.of(
            field=f"{path}: efficiency",
            value=entries,
            rule="must hold the constants of a software profile",
            fix="give a file that `haplan calibrate --software` wrote",
        )
    stated = {key: _value(entry) for key, entry in cast("dict[str, object]", entries).items()}
    faults = constant_faults(stated, place=f"{path}: efficiency")
    for name in document.keys() - SECTIONS:
        error = UnknownNameError(kind="section", name=name, known=SECTIONS, field=f"{path}: {name}")
        faults += error.violations
    if faults:
        raise InputError(faults)
    return cast("dict[str, float | bool]", stated)


def _value(entry: object) -> object:
    return cast("dict[str, object]", entry).get("value") if isinstance(entry, dict) else entry


def constant_faults(stated: Mapping[str, object], *, place: str) -> list[Violation]:
    """What is wrong with constants by name: names that are none, and values out of range."""
    kinds = CONSTANTS
    faults: list[Violation] = []
    for key, value in stated.items():
        field = f"{place}/{key}"
        if key not in kinds:
            error = UnknownNameError(kind="constant", name=key, known=kinds, field=field)
            faults += error.violations
        elif kinds[key] in (bool, "bool"):
            if not isinstance(value, bool):
                rule, fix = "must be true or false", "write one of them"
                faults.append(Violation(field=field, value=value, rule=rule, fix=fix))
        elif not _is_constant(value, share=key in SHARES):
            range_ = (
                f"above 0, at most {MOST_SHARE:g}"
                if key in SHARES
                else f"of at least 0, at most {MOST:g}"
            )
            rule = f"must be a number {range_}"
            faults.append(Violation(field=field, value=value, rule=rule, fix="correct it"))
    return faults


SHARES = frozenset({"gemm", "expert_gemm", "attention", "low_precision"})
"""Shares of a rate: with 0 nothing would ever end."""

MOST_SHARE = 2.0
"""Above all that a fit may find (``costmodel.calibration.parameters``)."""

MOST = 1e12
"""Of the other constants: keeps times and bytes finite."""


def _is_constant(value: object, *, share: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return False
    return 0.0 < value <= MOST_SHARE if share else 0.0 <= value <= MOST


def efficiency_of(software: str | Mapping[str, float | bool] | None) -> Efficiency:
    """The constants of a bundled stack by name, or the default ones with these in their place."""
    if software is None:
        return software_profile(DEFAULT).efficiency
    if isinstance(software, str):
        return software_profile(software).efficiency
    own: dict[str, Any] = {**software}
    return replace(software_profile(DEFAULT).efficiency, **own)


@cache
def spreads_between_stacks() -> Mapping[str, float]:
    """Standard deviation between stacks of the logarithm of every fitted constant."""
    entries = sheet_document(FOLDER, DEFAULT)["efficiency"]
    return {key: float(entry["between"]) for key, entry in entries.items() if "between" in entry}


@cache
def width_document() -> Mapping[str, Any]:
    """Widths of the 90 % intervals (``intervals.yaml``)."""
    return sheet_document(FOLDER, "intervals")


def _check(name: str, stated: Mapping[str, Any], *, whole: bool) -> None:
    known = set(CONSTANTS)
    wrong = sorted(set(stated) - known | (known - set(stated) if whole else set()))
    if wrong:
        raise InputError.of(
            field=f"software/{name}.yaml: efficiency",
            value=", ".join(wrong),
            rule="must name constants of the formulas, all of them in the default profile",
            fix="correct the names",
        )
