"""``calibrate``: from measurements to the profiles of a chip, its links and a training stack."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from costmodel.calibration.chip_profile import NewChip, chip_profile, new_chip_profile
from costmodel.calibration.link_profile import NewLink, link_profile, new_link_profile
from costmodel.calibration.links import Setting
from costmodel.calibration.measurements import CollectivePoint, Measurements
from costmodel.calibration.profiles import Profile, confidence
from costmodel.calibration.software_profile import kernel_profile, stack_profile
from costmodel.errors import InputError, UnknownNameError, Violation
from costmodel.hardware.sheets.read import (
    chip_names,
    link_names,
    load_chip,
    load_link,
    usual_scale_up,
)
from costmodel.software.read import profile_names

Document = dict[str, Any]

AUTO = "auto"
"""What `--software` of the other commands takes for the default constants."""

FILE_STEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was measured, by bundled names. nics: of a node, for collectives over the network.
    scale_up_domain: chips that the scale-up link joins, where more than a node. software: what the
    stack's profile is to be called. new_chip, new_link: a machine that no bundled sheet describes.
    """

    chip: str | None = None
    scale_up: str | None = None
    scale_out: str | None = None
    nics: int | None = None
    scale_up_domain: int | None = None
    software: str | None = None
    new_chip: NewChip | None = None
    new_link: NewLink | None = None

    def inside(self, point: CollectivePoint) -> bool:
        """Whether the point ran over the scale-up link."""
        return point.nodes == 1 or point.ranks <= (self.scale_up_domain or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was read, and the profiles made of it."""

    measured: Measurements
    profiles: tuple[Profile, ...]

    def document(self) -> Document:
        """As plain data (schema ``haplan.calibration/v1``)."""
        return {
            "schema": "haplan.calibration/v1",
            "files": [asdict(file) for file in self.measured.files],
            "profiles": [profile_document(profile) for profile in self.profiles],
        }


def calibrate(measured: Measurements, subject: Subject) -> Calibration:
    """The profiles of all that was measured. Raises InputError with every fault."""
    faults = [*_faults(measured, subject)]
    if faults:
        raise InputError(faults)
    profiles: list[Profile] = []
    for make in (_chip, _links, _software):
        try:
            profiles += make(measured, subject)
        except InputError as error:
            faults += error.violations
    if faults:
        raise InputError(faults)
    return Calibration(measured=measured, profiles=tuple(profiles))


def check_names(subject: Subject) -> None:
    """What is wrong with names before a sweep, whose chip may be a new one. Raises InputError."""
    new = None if subject.chip in chip_names() else subject.chip
    faults = [*_unknown_names(replace(subject, chip=None)), *_unusable_names(subject, new)]
    if faults:
        raise InputError(faults)


def profile_document(profile: Profile) -> Document:
    """One profile as plain data; its YAML is a file of its own."""
    return {
        "kind": profile.folder,
        "name": profile.name,
        "numbers": [
            {**asdict(number), "confidence": confidence(number)} for number in profile.numbers
        ],
        "kept": list(profile.kept),
        "residuals": {name: asdict(found) for name, found in profile.residuals.items()},
        "errors": dict(profile.errors),
        "remarks": list(profile.remarks),
        "document": profile.document,
    }


def _chip(measured: Measurements, subject: Subject) -> list[Profile]:
    if not (measured.gemms or measured.streams):
        return []
    source = _source(measured, "GEMM sweep", "memory sweep")
    if subject.new_chip is not None:
        return [new_chip_profile(measured, subject.new_chip, source)]
    return [chip_profile(measured, load_chip(subject.chip or ""), source)]


def _links(measured: Measurements, subject: Subject) -> list[Profile]:
    source = _source(measured, "nccl-tests", "collective sweep")
    inside, across = _parted(measured.collectives, subject)
    profiles: list[Profile] = []
    if inside and subject.new_link is not None:
        profiles.append(new_link_profile(inside, subject.new_link, source))
    elif inside:
        link = load_link(_scale_up(subject) or "", class_defaults=True)
        profiles.append(link_profile(inside, Setting(link=link, scale_up=True), source))
    if across:
        link = load_link(subject.scale_out or "", class_defaults=True)
        up = _scale_up(subject)
        within = load_link(up, class_defaults=True) if up else None
        setting = Setting(link=link, scale_up=False, nics=subject.nics or 1, inside=within)
        profiles.append(link_profile(across, setting, source))
    return profiles


def _software(measured: Measurements, subject: Subject) -> list[Profile]:
    if subject.software is None:
        return []
    if measured.cases:
        return [stack_profile(measured, subject.software)]
    chip = load_chip(subject.chip) if subject.chip and subject.new_chip is None else None
    return [kernel_profile(measured, subject.software, chip)]


def _parted(
    points: Sequence[CollectivePoint], subject: Subject
) -> tuple[list[CollectivePoint], list[CollectivePoint]]:
    """Those over the scale-up link, and those over the network."""
    inside = [point for point in points if subject.inside(point)]
    return inside, [point for point in points if not subject.inside(point)]


def _scale_up(subject: Subject) -> str | None:
    if subject.scale_up is None and subject.chip in chip_names():
        return usual_scale_up(subject.chip or "")
    return subject.scale_up


def _source(measured: Measurements, *kinds: str) -> str:
    paths = [file.path for file in measured.files if file.kind.startswith(kinds)]
    shown = ", ".join(path.rsplit("/", 1)[-1] for path in paths[:8])
    more = f" and {len(paths) - 8} more" if len(paths) > 8 else ""
    return f"haplan calibrate: {shown}{more}"


def _faults(measured: Measurements, subject: Subject) -> Iterator[Violation]:
    yield from _unknown_names(subject)
    yield from _unusable_names(subject, subject.new_chip.name if subject.new_chip else None)
    inside, across = _parted(measured.collectives, subject)
    kernels = measured.gemms or measured.streams
    if kernels and not subject.chip and subject.new_chip is None:
        yield _missing("--chip", kernels[0].where, "name the chip that it was measured on")
    if inside and subject.new_link is None and _scale_up(subject) is None:
        yield _missing("--scale-up", inside[0].where, "name the link inside the node, or the chip")
    if across and subject.scale_out is None:
        yield _missing("--scale-out", across[0].where, "name the network between the nodes")
    if across and subject.nics is None:
        yield _missing("--nics", across[0].where, "say how many NICs a node has")
    if measured.cases and subject.software is None:
        yield _missing("--software", "measured cases", "name the profile that is to be written")
    others = kernels or measured.collectives or measured.cases
    if measured.attention and subject.software is None and not others:
        where = measured.attention[0].where
        yield _missing("--software", where, "name the profile that its constants go into")
    uneven = [point for point in across if point.ranks % point.nodes]
    if uneven:
        one, value = uneven[0], f"{uneven[0].ranks} ranks on {uneven[0].nodes}"
        rule, fix = "must have as many ranks on every node", "measure whole nodes"
        yield Violation(field=one.where, value=value, rule=rule, fix=fix)
    yield from _unused(measured, subject, bool(across))


def _unusable_names(subject: Subject, new: str | None) -> Iterator[Violation]:
    """Names of new profiles, among them that of a chip, that cannot be those of files."""
    if subject.software in (AUTO, *profile_names()):
        rule, fix = "must not be the name of a bundled stack, nor auto", "choose a name of your own"
        yield Violation(field="--software", value=subject.software, rule=rule, fix=fix)
    for field, name in (("--software", subject.software), ("--chip", new)):
        if name is not None and not FILE_STEM.fullmatch(name):
            rule, fix = "must be the stem of a file", "use letters, digits, dots and hyphens"
            yield Violation(field=field, value=name, rule=rule, fix=fix)


def _unknown_names(subject: Subject) -> Iterator[Violation]:
    named = (
        ("chip", "--chip", subject.chip if subject.new_chip is None else None, chip_names()),
        ("link", "--scale-up", subject.scale_up, link_names()),
        ("link", "--scale-out", subject.scale_out, link_names()),
    )
    for kind, field, name, known in named:
        if name is not None and name not in known:
            error = UnknownNameError(kind=kind, name=name, known=known, field=field)
            yield from error.violations
    for field, name, up in (
        ("--scale-up", subject.scale_up, True),
        ("--scale-out", subject.scale_out, False),
    ):
        if name in link_names():
            link = load_link(name or "", class_defaults=True)
            if (link.kind == "scale-up") != up:
                rule = f"must be a link for {field[2:]}, and {name} is for {link.kind}"
                yield Violation(field=field, value=name, rule=rule, fix="name another link")


def _unused(measured: Measurements, subject: Subject, across: bool) -> Iterator[Violation]:
    """What is named and was not measured."""
    kernels = measured.cases or measured.gemms or measured.attention
    for field, value, used in (
        ("--scale-out", subject.scale_out, across),
        ("--nics", subject.nics, across),
        ("--scale-up-domain", subject.scale_up_domain, measured.collectives),
        ("--software", subject.software, kernels),
    ):
        if value is not None and not used:
            fix = "leave it out, or give files of it"
            yield Violation(field=field, value=value, rule="was not measured", fix=fix)


def _missing(option: str, where: str, fix: str) -> Violation:
    return Violation(field=option, value="nothing", rule=f"is needed for {where}", fix=fix)
