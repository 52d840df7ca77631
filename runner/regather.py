"""Gathered tensors are not kept for the backward: they are gathered again when it needs them.

While a block runs forward, autograd hooks replace every saved view of a gathered tensor by a note
of which gather it came from (Korthikanti et al., arXiv 2205.05198, section 4.2.2). The first use
in the backward gathers again; the gather's own backward drops the result.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from runner.groups import Group


class Gathered:
    """One gather: what it gathered, and how to do it again."""

    def __init__(self, local: Tensor, group: Group, axis: int) -> None:
        self._local = local
        self._group = group
        self._axis = axis
        self._whole: Tensor | None = None

    def again(self) -> Tensor:
        """The gathered tensor; gathers at the first call since it was dropped."""
        if self._whole is None:
            self._whole = self._group.all_gather(self._local, self._axis)
        return self._whole

    def drop(self) -> None:
        """Frees the gathered tensor."""
        self._whole = None


class _Note(NamedTuple):
    gathered: Gathered
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Regather:
    """Context of one block's forward; knows the gathered tensors alive in it."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tensor, Gathered]] = {}
        self._hooks = saved_tensors_hooks(self._pack, _unpack)

    def add(self, whole: Tensor, gathered: Gathered) -> None:
        """Registers a gather's output, which stays alive until the block's forward ends."""
        self._known[_storage(whole)] = whole, gathered

    def _pack(self, tensor: Tensor) -> Tensor | _Note:
        known = self._known.get(_storage(tensor))
        if known is None:
            return tensor
        size, stride = tuple(tensor.shape), tensor.stride()
        return _Note(known[1], size, stride, int(tensor.storage_offset()))

    def __enter__(self) -> Regather:
        self._hooks.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hooks.__exit__(kind, error, trace)
        self._known.clear()


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _unpack(packed: Any) -> Tensor:
    if isinstance(packed, _Note):
        whole = packed.gathered.again()
        return whole.as_strided(packed.size, packed.stride, packed.offset)
    return packed
