"""Finds the targets: every module of this package that defines ``TARGET``."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import planner.targets
from costmodel.errors import UnknownNameError
from planner.targets.target import Target

ANY = "any"
LAUNCHABLE = "launchable"
"""The best plan over the maintained targets."""


@cache
def targets() -> Mapping[str, Target]:
    """All targets by label, in the order of their names."""
    found: dict[str, Target] = {}
    for module in pkgutil.iter_modules(planner.targets.__path__):
        loaded = importlib.import_module(f"{planner.targets.__name__}.{module.name}")
        target = getattr(loaded, "TARGET", None)
        if isinstance(target, Target):
            found[target.label] = target
    return MappingProxyType(dict(sorted(found.items())))


@cache
def target_names() -> tuple[str, ...]:
    """What can be asked for: labels, bare names and ``launchable``."""
    bare = {target.name for target in targets().values()}
    return tuple(sorted({*targets(), *bare, LAUNCHABLE}))


def check_target(name: str) -> None:
    """Raises UnknownNameError when nothing is called so."""
    if name not in target_names():
        raise UnknownNameError(kind="target", name=name, known=target_names())


def target_called(name: str) -> Target:
    """The target of a label, or the default version of a bare name. Raises UnknownNameError."""
    for target in targets().values():
        if name == target.label or (name == target.name and target.default):
            return target
    raise UnknownNameError(kind="target", name=name, known=targets())


def maintained_targets() -> tuple[Target, ...]:
    """The targets that ``launchable`` chooses among."""
    return tuple(t for t in targets().values() if t.maintained and t.default)
