"""The model graph as a plain document (JSON or YAML) and back.

The format is described in ``docs/models.md``; ``costmodel.model.read`` checks documents of
strangers against the wire schema before they come here.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from costmodel.model.graph import Block, Component, ModelGraph, Op, Tie, Weight

SCHEMA = "haplan.graph/v1"
Document = dict[str, Any]


def graph_document(graph: ModelGraph) -> Document:
    """The graph as plain lists, mappings, numbers and texts; ``graph_from`` undoes it."""
    return {
        "schema": SCHEMA,
        "name": graph.name,
        "family": graph.family,
        "blocks": {name: _block_document(block) for name, block in graph.blocks.items()},
        "prologue": list(graph.prologue),
        "layers": _runs_document((name, 1) for name in graph.layers),
        "epilogue": list(graph.epilogue),
        "mtp": list(graph.mtp),
        "ties": [{"owner": tie.owner, "copied_to": tie.copy} for tie in graph.ties],
        "components": [_component_document(component) for component in graph.components],
        "streams": dict(graph.streams),
        "boundaries": [
            {"before_layer": layer, "blocks": list(names)}
            for layer, names in sorted(graph.boundaries.items())
        ],
        "max_sequence_length": graph.max_sequence_length,
        "assumptions": list(graph.assumptions),
    }


def _runs_document(runs: Iterable[tuple[str, int]]) -> list[Document]:
    grouped = groupby(runs, key=lambda run: run[0])
    return [{"block": name, "count": sum(n for _, n in items)} for name, items in grouped]


def _component_document(component: Component) -> Document:
    return {
        "name": component.name,
        "blocks": [{"block": name, "count": n} for name, n in component.blocks],
        "tokens_per_sequence": component.tokens_per_sequence,
    }


def _block_document(block: Block) -> Document:
    return {
        "dims": dict(block.dims),
        "tensors": {name: list(dims) for name, dims in block.tensors.items()},
        "inputs": list(block.inputs),
        "output": block.output,
        "stream": block.stream,
        "ops": [_op_document(op) for op in block.ops],
    }


def _op_document(op: Op) -> Document:
    weights = [
        {"name": w.name, "dims": list(w.dims)} | ({} if w.trainable else {"trainable": False})
        for w in op.weights
    ]
    document: Document = {"name": op.name, "kind": op.kind}
    document |= {"inputs": list(op.inputs), "outputs": list(op.outputs)}
    document |= {"weights": weights} if weights else {}
    document |= {"tp_dims": list(op.tp_dims)} if op.tp_dims else {}
    document |= {"attributes": dict(op.attributes)} if op.attributes else {}
    return document


def graph_from(document: Mapping[str, Any]) -> ModelGraph:
    """The graph of a well-formed document."""
    blocks = {name: _block_from(name, block) for name, block in document["blocks"].items()}
    ties = (Tie(owner=tie["owner"], copy=tie["copied_to"]) for tie in document.get("ties", ()))
    boundaries = {
        item["before_layer"]: tuple(item["blocks"]) for item in document.get("boundaries", ())
    }
    return ModelGraph(
        name=document["name"],
        family=document["family"],
        blocks=MappingProxyType(blocks),
        layers=tuple(name for name, n in _runs(document["layers"]) for _ in range(n)),
        prologue=tuple(document.get("prologue", ())),
        epilogue=tuple(document.get("epilogue", ())),
        mtp=tuple(document.get("mtp", ())),
        ties=tuple(ties),
        components=tuple(_component_from(item) for item in document.get("components", ())),
        streams=MappingProxyType(dict(document.get("streams", {"main": None}))),
        boundaries=MappingProxyType(boundaries),
        max_sequence_length=document.get("max_sequence_length"),
        assumptions=tuple(document.get("assumptions", ())),
    )


def _runs(items: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, int], ...]:
    return tuple((item["block"], item.get("count", 1)) for item in items)


def _component_from(item: Mapping[str, Any]) -> Component:
    return Component(
        name=item["name"],
        blocks=_runs(item["blocks"]),
        tokens_per_sequence=item.get("tokens_per_sequence"),
    )


def _block_from(name: str, item: Mapping[str, Any]) -> Block:
    return Block(
        name=name,
        dims=MappingProxyType(dict(item["dims"])),
        tensors=MappingProxyType({key: tuple(dims) for key, dims in item["tensors"].items()}),
        ops=tuple(_op_from(op) for op in item["ops"]),
        inputs=tuple(item.get("inputs", ())),
        output=item.get("output", ""),
        stream=item.get("stream", "main"),
    )


def _op_from(item: Mapping[str, Any]) -> Op:
    return Op(
        name=item["name"],
        kind=item["kind"],
        inputs=tuple(item.get("inputs", ())),
        outputs=tuple(item.get("outputs", ())),
        weights=tuple(
            Weight(name=w["name"], dims=tuple(w["dims"]), trainable=w.get("trainable", True))
            for w in item.get("weights", ())
        ),
        tp_dims=tuple(item.get("tp_dims", ())),
        attributes=MappingProxyType(dict(item.get("attributes", {}))),
    )
