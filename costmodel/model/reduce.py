"""Small models of the same structure: the same blocks, layers and ties with small dimensions.

The runner executes these, so sizes are chosen to split evenly over the parallel degrees and to
differ from each other where they differ in the model (more heads than kv heads, wide MLP).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from costmodel.model.graph import Attribute, Block, ModelGraph, Op

Dims = Mapping[str, int]

_DERIVED: tuple[tuple[str, Callable[[Dims], int]], ...] = (
    ("qk_dim", lambda d: d["nope_dim"] + d["rope_dim"]),
    ("double_hidden", lambda d: 2 * d["hidden"]),
    ("transformed", lambda d: d["hidden"]),
    ("projected", lambda d: d["hidden"]),
    ("first", lambda d: d["hidden"]),
    ("mix", lambda d: d["streams"] * (2 + d["streams"])),
    ("last_mix", lambda d: d["streams"]),
    ("group_width", lambda d: d["heads"] * d["v_dim"] // d["groups"]),
    ("compress_wide", lambda d: 2 * d["qk_dim"]),
    ("compress_wide", lambda d: d["qk_dim"]),
    ("index_wide", lambda d: 2 * d["index_dim"]),
)
"""Dimensions that follow from others, in the order in which they are worked out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """Parallel degrees that the sizes must divide by: least common multiples over the stages."""

    tp: int = 1
    ep: int = 1
    etp: int = 1


def shrink_sizes(graph: ModelGraph, degrees: Degrees, *, positions: int = 64) -> dict[str, int]:
    """Small sizes for the dimensions of the graph that divide by the degrees.

    positions: rows of tables of learned positions: at least the sequence length to be run.
    """
    blocks = [graph.blocks[name] for name in _stack_names(graph)]
    grouped = any(b.dims["heads"] > b.dims["kv_heads"] for b in blocks if "kv_heads" in b.dims)
    wide_keys = any(b.dims["qk_dim"] != b.dims["v_dim"] for b in blocks if "v_dim" in b.dims)
    small = dict(_SMALL) | {
        "positions": positions,
        "v_dim": 6 if wide_keys else 8,
        "expert_ffn": _up(10, degrees.etp),
        "experts": _up(8, degrees.ep),
    }
    small |= {dim: _up(size, degrees.tp) for dim, size in _SPLIT.items()}
    small |= {dim: _up(4, 2 * degrees.tp) for dim in ("heads", "ssm_heads", "value_heads")}
    if not grouped:
        small["heads"] = _up(2, degrees.tp)
    present = {dim for block in blocks for dim in block.dims}
    return {dim: size for dim, size in small.items() if dim in present}


_SMALL: Dims = MappingProxyType(
    {
        "hidden": 12,
        "qk_dim": 8,
        "nope_dim": 4,
        "rope_dim": 4,
        "q_rank": 10,
        "kv_rank": 8,
        "latent": 6,
        "o_rank": 4,
        "index_heads": 2,
        "index_dim": 8,
        "rank": 4,
        "state": 8,
        "ssm_dim": 4,
        "key_dim": 4,
        "value_dim": 4,
        "decay_rank": 4,
        "classes": 10,
        "patch": 12,
        "mels": 6,
        "buckets": 4,
    }
)
"""Sizes that nothing splits."""

_SPLIT: Dims = MappingProxyType(
    {
        "vocab": 32,
        "kv_heads": 2,
        "ffn": 20,
        "shared_ffn": 14,
        "groups": 2,
        "inner": 16,
        "key_heads": 2,
    }
)
"""Sizes that tensor parallelism splits, rounded up to a multiple of its degree."""


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def reduced(
    graph: ModelGraph, sizes: Mapping[str, int], *, sequence_length: int | None = None
) -> ModelGraph:
    """The same model with these dimension sizes in every block of the main stack.

    Dimensions that follow from others (a head's parts, both halves of a join) follow. Top-k stays
    below the number of experts. With ``sequence_length``, windows and chunks shrink to half of it,
    so that they still cut something. Components are left out: they run beside the stack.
    """
    blocks = {
        name: _reduced_block(graph.blocks[name], sizes, sequence_length)
        for name in _stack_names(graph)
    }
    return replace(
        graph,
        blocks=MappingProxyType(blocks),
        components=(),
        ties=tuple(tie for tie in graph.ties if tie.copy.split(".", 1)[0] in blocks),
    )


def _stack_names(graph: ModelGraph) -> tuple[str, ...]:
    between = tuple(name for names in graph.boundaries.values() for name in names)
    names = graph.prologue + graph.layers + graph.epilogue + graph.mtp + between
    return tuple(dict.fromkeys(names))


def _reduced_block(block: Block, sizes: Mapping[str, int], length: int | None) -> Block:
    dims = {name: sizes.get(name, size) for name, size in block.dims.items()}
    for name, rule in _DERIVED:
        if name in dims and _follows(rule, block.dims, block.dims[name]):
            dims[name] = rule(dims)
    ops = tuple(_reduced_op(op, block, dims, length) for op in block.ops)
    return replace(block, dims=MappingProxyType(dims), ops=ops)


def _follows(rule: Callable[[Dims], int], dims: Dims, size: int) -> bool:
    try:
        return rule(dims) == size
    except KeyError:
        return False


def _reduced_op(op: Op, block: Block, dims: Dims, length: int | None) -> Op:
    changed: dict[str, Attribute] = dict(op.attributes)
    if "top_k" in changed:
        changed["top_k"] = min(int(changed["top_k"]), max(1, dims["experts"] // 2))
    if "state" in changed:
        changed["state"] = dims.get("state", dims.get("key_dim", int(changed["state"])))
    if op.kind == "rotary" and changed.get("size"):
        changed["size"] = _rotated(op, block, dims)
    if length is not None:
        for key in ("window", "chunk", "top_keys", "compressed_keys"):
            if op.kind == "attention" and changed.get(key):
                changed[key] = min(int(changed[key]), max(1, length // 2))
    return replace(op, attributes=MappingProxyType(changed))


def _rotated(op: Op, block: Block, dims: Dims) -> int:
    """The rotary part of a head, or the same share of it, as an even number of elements."""
    if op.attributes.get("at_end") and "rope_dim" in dims:
        return dims["rope_dim"]
    last = block.tensors[op.inputs[0]][-1]
    return max(2, int(op.attributes["size"]) * dims[last] // block.dims[last] // 2 * 2)
