"""`haplan calibrate`: reads measurements, and writes the profiles made of them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import yaml

from costmodel.calibration.calibrate import Subject, calibrate, check_names
from costmodel.calibration.chip_profile import NewChip
from costmodel.calibration.files import read_measurements
from costmodel.calibration.link_profile import NewLink
from costmodel.errors import InputError, UnknownNameError, Violation
from costmodel.hardware.sheets.read import chip_names, usual_scale_up
from service.outcomes import PolicyError

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The document of a calibration, and the YAML of each profile by its path in the folder."""

    document: Document
    files: dict[str, str]


RAW = "raw"
"""Folder of a sweep's tables, beside the profiles."""


def swept(
    subject: Subject, *, device: str, quick: bool, folder: Path, progress: Callable[[str], None]
) -> tuple[list[Path], Subject]:
    """The tables of micro-benchmarks on this machine, and what they are of.

    A chip or link that is not bundled gets a sheet of its own. Raises InputError for a device or a
    name that is unknown, before anything is measured; PolicyError when a benchmark fails,
    ModuleNotFoundError without torch.
    """
    from runner.sweep.launch import SweepError, sweep
    from runner.sweep.shapes import AUTO, DEVICES

    if device not in (AUTO, *DEVICES):
        known = (AUTO, *DEVICES)
        raise UnknownNameError(kind="device", name=device, known=known, field="--device")
    check_folder(folder)
    check_names(subject)
    try:
        found = sweep(device, quick=quick, into=folder / RAW, progress=progress)
    except SweepError as error:
        raise PolicyError(str(error)) from error
    return [*found.tables], _subject_of(subject, found.machine)


def check_sweep_options(*, sweep: bool, device: str, quick: bool) -> None:
    """Raise InputError for options of a sweep where none is asked for."""
    given = {"--device": device if device != "auto" else None, "--quick": quick or None}
    rule, fix = "is of a sweep alone", "add --sweep, or leave it out"
    faults = [
        Violation(field=field, value=value, rule=rule, fix=fix)
        for field, value in given.items()
        if value is not None and not sweep
    ]
    if faults:
        raise InputError(faults)


def check_folder(folder: Path) -> None:
    """Raise InputError where profiles cannot go, before anything is measured."""
    if folder.exists() and not folder.is_dir():
        raise InputError.of(
            field="--into",
            value=str(folder),
            rule="must be a folder, or the name of a new one",
            fix="choose another name",
        )


def _subject_of(subject: Subject, machine: Mapping[str, Any]) -> Subject:
    """The subject with new sheets where no bundled one is named."""
    name = subject.chip or re.sub(r"[^a-z0-9]+", "-", machine["title"].lower()).strip("-")
    compiled = datetime.now(tz=UTC).date().isoformat()
    bundled = name in chip_names()
    link = subject.scale_up or (usual_scale_up(name) if bundled else None)
    chip = NewChip(
        name=name,
        title=machine["title"],
        vendor=machine["vendor"],
        memory_bytes=machine["memory_bytes"],
        compiled=compiled,
    )
    between = NewLink(
        name=f"{name}-link",
        title=f"Between processes of one machine: {machine['title']}",
        fabric=f"{name}-link",
        compiled=compiled,
    )
    return replace(
        subject,
        chip=name if bundled else None,
        scale_up=link,
        new_chip=None if bundled else chip,
        new_link=None if link else between,
    )


def calibrate_files(paths: Sequence[Path], subject: Subject, *, folder: Path) -> Written:
    """The profiles of what the files hold. Raises InputError with every fault."""
    check_folder(folder)
    if not paths:
        raise InputError.of(
            field="FILES",
            value="nothing",
            rule="must name files of measurements",
            fix="give some, or --sweep to measure this machine",
        )
    document = calibrate(read_measurements(paths), subject).document()
    files: dict[str, str] = {}
    for profile in document["profiles"]:
        place = f"{profile['kind']}/{profile['name']}.yaml"
        files[place] = yaml_text(profile["document"])
        profile["path"] = str(folder / place)
    return Written(document=document, files=files)


def yaml_text(document: Document) -> str:
    """A profile as its file has it: a line for every number."""
    dump = cast("Callable[..., str]", vars(yaml)["safe_dump"])
    return dump(document, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1000)
