"""Some rows of a stage table."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from costmodel.stage.table import StageTable, Terms


def rows_of(table: StageTable, rows: Sequence[int]) -> StageTable:
    """The table with these options only, in this order. Every array of it has one row an option."""
    if list(rows) == list(range(len(table.options))):
        return table
    index = np.array(rows, np.int64)
    parts: dict[str, Any] = {f.name: _cut(getattr(table, f.name), index) for f in fields(table)}
    return replace(table, **parts)


def _cut(part: Any, index: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    if isinstance(part, Terms):
        terms: dict[str, Any] = {f.name: getattr(part, f.name)[index] for f in fields(part)}
        return replace(part, **terms)
    if isinstance(part, tuple):
        return tuple(part[row] for row in index.tolist())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return part[index]
