"""What makes a well-formed graph document a consistent model: names that fit together.

All broken rules are found at once, each with a JSON pointer into the graph document.
"""

from collections.abc import Iterator, Mapping

from costmodel.errors import InputError, Violation
from costmodel.model.graph import Block, ModelGraph, Op

MAX_LAYERS = 4096
KINDS = frozenset(
    {
        "activation",
        "attention",
        "bias",
        "classifier",
        "conv",
        "elementwise",
        "embedding",
        "experts",
        "head",
        "linear",
        "norm",
        "opaque",
        "position",
        "rotary",
        "router",
        "scan",
    }
)
"""Op kinds, as in ``docs/ops.md``."""

_NEEDED_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "router": ("top_k",),
    "experts": ("top_k",),
    "opaque": ("flop_per_token",),
}


def check_graph(graph: ModelGraph) -> None:
    """Raises one InputError with every rule that the graph breaks."""
    found = list(_violations(graph))
    if found:
        raise InputError(found)


def _broken(field: str, value: object, rule: str, fix: str) -> Violation:
    return Violation(field=field, value=value, rule=rule, fix=fix)


def _violations(graph: ModelGraph) -> Iterator[Violation]:
    if graph.num_layers > MAX_LAYERS:
        yield _broken("/layers", graph.num_layers, f"must be at most {MAX_LAYERS}", "use fewer")
    if "main" not in graph.streams:
        yield _broken("/streams", list(graph.streams), "must have `main`", "add `main: null`")
    yield from _unknown_blocks(graph)
    for name, block in graph.blocks.items():
        yield from _block(f"/blocks/{name}", block, graph.streams)
    yield from _ties(graph)


def _unknown_blocks(graph: ModelGraph) -> Iterator[Violation]:
    used = {"prologue": graph.prologue, "epilogue": graph.epilogue, "mtp": graph.mtp}
    used["layers"] = tuple(dict.fromkeys(graph.layers))
    used["components"] = tuple(name for part in graph.components for name, _ in part.blocks)
    used["boundaries"] = tuple(name for names in graph.boundaries.values() for name in names)
    for field, names in used.items():
        for name in names:
            if name not in graph.blocks:
                yield _broken(f"/{field}", name, "must name a block", "define it under blocks")
    for layer in graph.boundaries:
        if layer > graph.num_layers:
            fix = f"use 0 to {graph.num_layers}"
            yield _broken("/boundaries", layer, "must be before a layer", fix)


def _block(where: str, block: Block, streams: Mapping[str, int | None]) -> Iterator[Violation]:
    if block.stream not in streams:
        yield _broken(f"{where}/stream", block.stream, "must be a stream", "add it to /streams")
    for tensor, dims in block.tensors.items():
        yield from _dims(f"{where}/tensors/{tensor}", dims, block)
    known = set(block.inputs)
    for index, name in enumerate(block.inputs):
        if name not in block.tensors:
            pointer = f"{where}/inputs/{index}"
            yield _broken(pointer, name, "must be a tensor", "add its dimensions to tensors")
    names: set[str] = set()
    for index, op in enumerate(block.ops):
        pointer = f"{where}/ops/{index}"
        if op.name in names:
            yield _broken(f"{pointer}/name", op.name, "must be unique in its block", "rename it")
        names.add(op.name)
        yield from _op(pointer, op, block, known)
        known |= set(op.outputs)
    if block.output and block.output not in known:
        fix = "name the output of an op"
        yield _broken(f"{where}/output", block.output, "must be a tensor of the block", fix)


def _op(where: str, op: Op, block: Block, known: set[str]) -> Iterator[Violation]:
    if op.kind not in KINDS:
        fix = f"use one of {', '.join(sorted(KINDS))}"
        yield _broken(f"{where}/kind", op.kind, "must be a known kind", fix)
    for key in _NEEDED_ATTRIBUTES.get(op.kind, ()):
        if key not in op.attributes:
            yield _broken(f"{where}/attributes", dict(op.attributes), f"must have {key}", "add it")
    yield from _op_tensors(where, op, block, known)
    for index, weight in enumerate(op.weights):
        pointer = f"{where}/weights/{index}/dims"
        yield from _dims(pointer, weight.dims, block)
        if len(set(weight.dims)) < len(weight.dims):
            yield _broken(pointer, weight.dims, "must not repeat a dimension", "rename one")
    yield from _dims(f"{where}/tp_dims", op.tp_dims, block)


def _op_tensors(where: str, op: Op, block: Block, known: set[str]) -> Iterator[Violation]:
    for index, name in enumerate(op.inputs):
        if name not in known:
            fix = "list the op that makes it before this one"
            yield _broken(f"{where}/inputs/{index}", name, "must be made before its use", fix)
    for index, name in enumerate(op.outputs):
        if name not in block.tensors:
            fix = "add its dimensions to tensors"
            yield _broken(f"{where}/outputs/{index}", name, "must be a tensor", fix)
        elif name in known:
            yield _broken(f"{where}/outputs/{index}", name, "must be made once", "rename it")


def _dims(where: str, dims: tuple[str, ...], block: Block) -> Iterator[Violation]:
    for dim in dims:
        if dim not in block.dims:
            yield _broken(where, dim, "must be a dimension of the block", "give it a size in dims")


def _ties(graph: ModelGraph) -> Iterator[Violation]:
    weights = {
        f"{name}.{op.name}.{weight.name}": block.elements(weight.dims)
        for name, block in graph.blocks.items()
        for op in block.ops
        for weight in op.weights
        if all(dim in block.dims for dim in weight.dims)
    }
    for index, tie in enumerate(graph.ties):
        ends = {"owner": tie.owner, "copied_to": tie.copy}
        missing = {key: path for key, path in ends.items() if path not in weights}
        for key, path in missing.items():
            fix = "write block.op.weight"
            yield _broken(f"/ties/{index}/{key}", path, "must be a weight", fix)
        if not missing and weights[tie.owner] != weights[tie.copy]:
            fix = "tie weights with the same number of elements"
            yield _broken(f"/ties/{index}", ends, "must join weights of one size", fix)
