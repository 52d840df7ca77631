"""Initial weights: a pure function of the seed, the parameter's name and its sizes."""

from __future__ import annotations

from hashlib import blake2b
from math import prod

import torch
from torch import Tensor

from costmodel.layout.shards import Box

DTYPE = torch.float64


def initial(seed: int, name: str, sizes: tuple[int, ...]) -> Tensor:
    """The whole parameter, float64.

    A normal sample over the square root of the elements of all dimensions but the first; a
    norm's scale around 1, a vector around 0.
    """
    digest = blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
    sample = torch.randn(sizes, generator=generator, dtype=DTYPE)
    if name.endswith(".scale"):
        return 1.0 + 0.1 * sample
    return sample * (prod(sizes[1:]) ** -0.5 if len(sizes) > 1 else 0.1)


def shard(whole: Tensor, box: Box) -> Tensor:
    """A rank's part, with zeros where the box goes beyond the parameter (padding)."""
    part = torch.zeros([stop - start for start, stop in box], dtype=whole.dtype)
    inside = [(a, min(b, size)) for (a, b), size in zip(box, whole.shape, strict=True)]
    if all(a < b for a, b in inside):
        slices = tuple(slice(a, b) for a, b in inside)
        part[tuple(slice(0, b - a) for a, b in inside)] = whole[slices]
    return part


def within(outer: Box, inner: Box) -> tuple[slice, ...]:
    """Where a box lies inside a shard that contains it."""
    pairs = zip(outer, inner, strict=True)
    return tuple(slice(a - start, b - start) for (start, _), (a, b) in pairs)
