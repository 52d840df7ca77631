"""What a run of the processes is given, and what comes back."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from costmodel.job import Job
from costmodel.layout.values import Layout
from costmodel.model.graph import ModelGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A deliberate mistake in the executed plan, to prove that validation finds it.

    gradient_weight: factor on the gradients of the first pipeline's sequences.
    skipped_layer: a layer that no stage runs.
    """

    gradient_weight: float = 1.0
    skipped_layer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One execution: the reduced model under the reduced layout."""

    graph: ModelGraph
    layout: Layout
    job: Job
    seed: int = 0
    fault: Fault = field(default_factory=Fault)
    timeout_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was measured.

    loss_max_abs_diff: largest difference of a sequence's mean loss from the reference.
    grad_max_rel_diff: largest difference of a gradient element over the largest element of that
        parameter's gradient. weight_max_rel_diff: the same for the updated weights.
    uncovered: parameters that some rank should have reported and none did.
    observed: bytes per (kind, ranks).
    """

    loss_max_abs_diff: float
    grad_max_rel_diff: float
    worst_parameter: str
    weight_max_rel_diff: float
    uncovered: tuple[str, ...]
    observed: Mapping[tuple[str, tuple[int, ...]], int]
    elapsed_s: float


def _as_proxy(value: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(value)


class _Pickler(pickle.Pickler):
    """Knows how to write read-only mappings."""

    def reducer_override(self, obj: Any, /) -> Any:
        if isinstance(obj, MappingProxyType):
            return _as_proxy, (dict(cast("MappingProxyType[Any, Any]", obj)),)
        return NotImplemented


def write(path: Path, value: object) -> None:
    """Writes a value of this module to a file of our own."""
    buffer = BytesIO()
    _Pickler(buffer).dump(value)
    path.write_bytes(buffer.getvalue())


def read(path: Path) -> Any:
    """Reads what ``write`` wrote."""
    return pickle.loads(path.read_bytes())
