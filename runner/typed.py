"""The few torch functions whose own types are incomplete, with types. Nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.distributed
from torch import Tensor
from torch.autograd import Function

dist: Any = torch.distributed
"""``torch.distributed``, whose functions are only partly typed."""


def apply(function: type[Function], *arguments: Any) -> Tensor:
    """The result of an autograd function."""
    kind: Any = function
    return kind.apply(*arguments)


def split(tensor: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """Consecutive parts along the first axis."""
    whole: Any = tensor
    return tuple(whole.split(list(sizes)))


def unflatten(tensor: Tensor, axis: int, sizes: tuple[int, ...]) -> Tensor:
    """One axis cut into several."""
    whole: Any = tensor
    return whole.unflatten(axis, sizes)


def numbers(tensor: Tensor) -> list[float]:
    """The values of a vector."""
    return [float(value) for value in tensor]


def gradient(result: Tensor, leaf: Tensor, grad: Tensor) -> Tensor:
    """The gradient of one leaf, where ``grad`` is that of the result."""
    whole: Any = torch.autograd
    (found,) = whole.grad(result, leaf, grad)
    return found


def backward(total: Tensor) -> None:
    """Adds gradients to the leaves below a scalar."""
    scalar: Any = total
    scalar.backward()
