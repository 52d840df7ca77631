"""Finds the schedules: every module of this package that defines ``SCHEDULE``."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import costmodel.schedules
from costmodel.errors import UnknownNameError
from costmodel.schedules.kind import ScheduleKind


@cache
def schedules() -> Mapping[str, ScheduleKind]:
    """All schedules by name."""
    found: dict[str, ScheduleKind] = {}
    for module in pkgutil.iter_modules(costmodel.schedules.__path__):
        loaded = importlib.import_module(f"{costmodel.schedules.__name__}.{module.name}")
        kind = getattr(loaded, "SCHEDULE", None)
        if isinstance(kind, ScheduleKind):
            found[kind.name] = kind
    return MappingProxyType(dict(sorted(found.items())))


def schedule(name: str) -> ScheduleKind:
    """The schedule called ``name``; UnknownNameError when there is none."""
    known = schedules()
    if name not in known:
        raise UnknownNameError(kind="schedule", name=name, known=known)
    return known[name]
