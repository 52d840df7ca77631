"""Parameter counts of a model graph.

Tied weights are counted once. Multi-token-prediction blocks are counted beside the total and not
in it, as published totals do (DeepSeek-V3: 671 B without, 685 B with them).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from costmodel.model.graph import Block, ModelGraph, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """Numbers of parameters.

    total: all of them but multi-token prediction.
    active: those that one token uses: total without the experts that it is not routed to.
    embedding: the input embedding (also counted in total and active).
    expert: routed experts, all of them.
    component: parts beside the main stack, such as a vision tower (counted in total).
    mtp: multi-token prediction, without what it shares with the main model.
    """

    total: int
    active: int
    embedding: int
    expert: int
    component: int
    mtp: int


def op_parameters(op: Op, block: Block) -> int:
    """Elements of all weights of an op."""
    return sum(block.elements(weight.dims) for weight in op.weights)


def block_parameters(block: Block) -> int:
    """Elements of all weights of a block."""
    return sum(op_parameters(op, block) for op in block.ops)


def block_uses(graph: ModelGraph) -> Counter[str]:
    """How many times each block occurs in the main stack (no MTP, no components)."""
    uses = Counter(graph.layers + graph.prologue + graph.epilogue)
    for names in graph.boundaries.values():
        uses.update(names)
    return uses


def tied_copies(graph: ModelGraph) -> Counter[str]:
    """Parameters that each block holds as copies of another block's weights."""
    copies: Counter[str] = Counter()
    for tie in graph.ties:
        block, op, weight = tie.copy.rsplit(".", 2)
        copies[block] += _weight_size(graph.blocks[block], op, weight)
    return copies


def parameter_counts(graph: ModelGraph) -> ParameterCounts:
    """Counts of the whole model."""
    uses, copies = block_uses(graph), tied_copies(graph)
    sizes = {name: block_parameters(block) - copies[name] for name, block in graph.blocks.items()}
    component = sum(sizes[name] * n for part in graph.components for name, n in part.blocks)
    total = component + sum(sizes[name] * n for name, n in uses.items())
    expert = idle = 0
    for name, n in uses.items():
        for held, unused in _experts(graph.blocks[name]):
            expert += held * n
            idle += unused * n
    return ParameterCounts(
        total=total,
        active=total - idle,
        embedding=_embedding(graph),
        expert=expert,
        component=component,
        mtp=sum(sizes[name] for name in graph.mtp),
    )


def _weight_size(block: Block, op_name: str, weight_name: str) -> int:
    for op in block.ops:
        for weight in op.weights:
            if op.name == op_name and weight.name == weight_name:
                return block.elements(weight.dims)
    raise KeyError(f"{block.name}.{op_name}.{weight_name}")


def _experts(block: Block) -> Iterator[tuple[int, int]]:
    """(parameters, those of experts that a token does not use) of each experts op."""
    for op in block.ops:
        if op.kind == "experts":
            size, experts = op_parameters(op, block), block.dims["experts"]
            yield size, size - size // experts * int(op.attributes["top_k"])


def _embedding(graph: ModelGraph) -> int:
    names = graph.prologue + tuple(n for group in graph.boundaries.values() for n in group)
    copies = {tie.copy for tie in graph.ties}
    return sum(
        op_parameters(op, graph.blocks[name])
        for name in names
        for op in graph.blocks[name].ops
        if op.kind == "embedding" and f"{name}.{op.name}.table" not in copies
    )
