"""Finds the op kinds: every module of this package that defines ``work``."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

import costmodel.model.ops as package
from costmodel.errors import UnknownNameError
from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import Local, Work

WorkOf = Callable[[Op, Block, Local], Work]
_SUPPORT_MODULES = {"registry", "work"}


@cache
def op_kinds() -> MappingProxyType[str, WorkOf]:
    """Op kind -> function that gives its work."""
    names = {m.name for m in iter_modules(package.__path__)} - _SUPPORT_MODULES
    return MappingProxyType(
        {n: import_module(f"{package.__name__}.{n}").work for n in sorted(names)}
    )


def work_of(op: Op, block: Block, local: Local) -> Work:
    """Work of one op. Raises UnknownNameError for a kind that has no file here."""
    kinds = op_kinds()
    if op.kind not in kinds:
        raise UnknownNameError(
            kind="op kind", name=op.kind, known=kinds, field=f"{block.name}/{op.name}"
        )
    return kinds[op.kind](op, block, local)
