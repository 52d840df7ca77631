"""What a model family is, and the registry that finds all of them.

A family is one module of ``costmodel.model.families`` with a constant ``FAMILY``; adding one
touches no other file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from costmodel.model.config import Config
from costmodel.model.graph import ModelGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A way to read configs.

    name: what ``--as-family`` takes.
    model_types: values of the config key ``model_type`` that mean this family.
    build: reads a config into a graph; calls ``config.check()`` before it uses any size.
    """

    name: str
    model_types: tuple[str, ...]
    build: Callable[[Config], ModelGraph]


@cache
def families() -> Mapping[str, Family]:
    """All families by name, found by walking the package."""
    package = import_module("costmodel.model.families")
    names = sorted(info.name for info in iter_modules(package.__path__))
    found: dict[str, Family] = {}
    for name in names:
        family: Family = import_module(f"{package.__name__}.{name}").FAMILY
        found[family.name] = family
    return found


@cache
def family_of_type() -> Mapping[str, Family]:
    """Family of each known ``model_type``."""
    return {kind: family for family in families().values() for kind in family.model_types}
