"""Finds the op kinds: every module of this package that defines ``run``.

``run(op, inputs, weights, place)`` works on a rank's shards. A kind whose unsplit meaning is
worth writing down on its own has ``whole`` with the same arguments, which the reference uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from torch import Tensor

import runner.ops as package
from costmodel.model.graph import Op
from runner.place import Place

Run = Callable[[Op, tuple[Tensor, ...], Mapping[str, Tensor], Place], Tensor]


@cache
def _modules() -> dict[str, ModuleType]:
    names = sorted(m.name for m in iter_modules(package.__path__))
    found = {name: import_module(f"{package.__name__}.{name}") for name in names}
    return {name: module for name, module in found.items() if hasattr(module, "run")}


def kinds() -> frozenset[str]:
    """Op kinds that can be executed."""
    return frozenset(_modules())


def local(kind: str) -> Run:
    """The implementation on shards."""
    return _modules()[kind].run


def whole(kind: str) -> Run:
    """The implementation on unsplit tensors."""
    module = _modules()[kind]
    return getattr(module, "whole", module.run)
