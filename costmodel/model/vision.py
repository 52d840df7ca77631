"""Vision towers: components that are replicated on the first stage and counted whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from costmodel.model.builder import LAYER, BlockBuilder, Norm
from costmodel.model.config import Config
from costmodel.model.graph import Block, Component

Tower = tuple[Component, Sequence[Block]]

UNCOUNTED_TOKENS = (
    "vision tower: tokens per sequence are not stated, so its weights count and its arithmetic "
    "does not"
)


def tower(name: str, parts: Sequence[tuple[Block, int]]) -> Tower:
    """A component of these blocks, each so many times in a row."""
    blocks = tuple((block.name, times) for block, times in parts)
    return Component(name=name, blocks=blocks), [block for block, _ in parts]


def side(config: Config, key: str, default: int) -> int:
    """A length in pixels or patches; a list of equal sides reads as one of them."""
    value = config.raw(key)
    if isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]
        return Config({key: value}, violations=config.violations).size(key)
    return config.size(key, default=default)


def patch_block(name: str, hidden: int, patch: int, *, bias: bool) -> BlockBuilder:
    """Starts a block that projects flattened patches to the tower's width (tensor ``patches``)."""
    b = BlockBuilder(name, {"hidden": hidden, "patch": patch}, inputs={"pixels": ("patch",)})
    b.linear("patches", "pixels", ("hidden",), bias=bias)
    return b


@dataclass(frozen=True, slots=True, kw_only=True)
class Merger:
    """Joins neighbouring patches and projects them to the language model's width.

    factor: patches joined to one token. norm_first: normalises patches before joining them.
    """

    factor: int
    out: int
    norm: Norm = LAYER
    norm_first: bool = True


def merger_block(name: str, hidden: int, m: Merger) -> Block:
    """norm -> join -> linear -> activation -> linear, once for every joined token."""
    b = BlockBuilder(name, {"hidden": hidden})
    b.define(merged=hidden * m.factor, merged_ffn=hidden * m.factor, out=m.out)
    x = b.norm("norm", "x", m.norm) if m.norm_first else "x"
    x = b.op("opaque", "joined", (x,), ("merged",), flop_per_token=0)
    x = x if m.norm_first else b.norm("norm", x, m.norm)
    x = b.linear("fc1", x, ("merged_ffn",), bias=True)
    x = b.activation("act", (x,), "gelu", ())
    return b.build(b.linear("fc2", x, ("out",), bias=True))
