"""What the runner cannot execute, said before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from costmodel.errors import Violation
from costmodel.layout.values import Layout
from costmodel.model.graph import Block, ModelGraph, Op
from planner.targets.runner import layout_refusals

EXECUTED_OPS = frozenset(
    {
        "activation",
        "attention",
        "bias",
        "elementwise",
        "embedding",
        "experts",
        "head",
        "linear",
        "norm",
        "position",
        "rotary",
        "router",
    }
)
"""The files of ``runner/ops`` (a test holds the two together; this module does not load torch)."""
EXECUTED_FUNCTIONS = frozenset(
    {
        "gelu",
        "gelu_fast",
        "gelu_new",
        "gelu_pytorch_tanh",
        "gelu_tanh",
        "quick_gelu",
        "relu",
        "relu2",
        "sigmoid",
        "silu",
        "swiglu",
        "swish",
        "tanh",
    }
)
ELEMENTWISE = ("add", "mul", "concat")
FOREIGN_ATTENTION = ("top_keys", "compressed_keys", "keys_stream")
"""Attributes that select or compress keys, or take them from another stream."""


def refusals(graph: ModelGraph, layout: Layout) -> tuple[Violation, ...]:
    """Everything in the plan that the runner has no implementation of."""
    return (*layout_refusals(layout), *_graph(graph), *_split_norms(graph, layout))


def _graph(graph: ModelGraph) -> Iterator[Violation]:
    if set(graph.streams) != {"main"} or graph.boundaries:
        rule = "models with an encoder and a decoder are not executed"
        yield _refusal("/model/graph", graph.name, rule, "validate a decoder-only model")
    used = dict.fromkeys((*graph.prologue, *graph.layers, *graph.epilogue, *graph.mtp))
    for name in used:
        for op in graph.blocks[name].ops:
            reason = _reason(op)
            if reason:
                yield _refusal(f"/model/graph/blocks/{name}/{op.name}", op.kind, reason, _OPS_FIX)


_OPS_FIX = f"models of these op kinds can be validated: {', '.join(sorted(EXECUTED_OPS))}"


def _reason(op: Op) -> str:
    """Why an op cannot be executed; empty when it can."""
    if op.kind not in EXECUTED_OPS:
        return f"op kind {op.kind} has no implementation in the runner"
    function = op.attributes.get("function")
    if op.kind == "elementwise" and (function not in ELEMENTWISE or op.weights):
        return f"elementwise function {function} is not executed"
    if op.kind in ("activation", "experts") and function not in EXECUTED_FUNCTIONS:
        return f"function {function} is not executed"
    foreign = [name for name in FOREIGN_ATTENTION if op.attributes.get(name)]
    if op.kind == "attention" and foreign:
        return f"attention with {foreign[0]} is not executed"
    return ""


def _split_norms(graph: ModelGraph, layout: Layout) -> Iterator[Violation]:
    widest = max((s.option.tp for p in layout.pipelines for s in p.stages), default=1)
    if widest == 1:
        return
    for block in graph.blocks.values():
        for op in block.ops:
            if op.kind == "norm" and _normalised(op, block) & set(op.tp_dims):
                field = f"/model/graph/blocks/{block.name}/{op.name}"
                rule = "a norm over a dimension that tp splits is not executed"
                yield _refusal(field, op.kind, rule, "plan with tp 1 to validate it")


def _normalised(op: Op, block: Block) -> set[str]:
    return set(op.weights[0].dims if op.weights else block.tensors[op.inputs[0]][-1:])


def _refusal(field: str, value: object, rule: str, fix: str) -> Violation:
    return Violation(field=field, value=value, rule=rule, fix=fix)
