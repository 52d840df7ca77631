"""`haplan calibrate`: reads measurements, and writes the profiles made of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from costmodel.calibration.calibrate import Subject, calibrate
from costmodel.calibration.files import read_measurements
from costmodel.errors import InputError

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The document of a calibration, and the YAML of each profile by its path in the folder."""

    document: Document
    files: dict[str, str]


def calibrate_files(paths: Sequence[Path], subject: Subject, *, folder: Path) -> Written:
    """The profiles of what the files hold. Raises InputError with every fault."""
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
