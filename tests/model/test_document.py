"""The graph format: writing and reading undo each other; all mistakes come at once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.model.document import graph_document, graph_from
from costmodel.model.graph import Block, Component, ModelGraph, Op, Tie, Weight
from costmodel.model.read import load_model, read_graph
from costmodel.safe_document import load_document
from tests.model.counts import COUNTS

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
ATTRIBUTES = st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | NAMES


@st.composite
def chains(draw: st.DrawFn, name: str) -> Block:
    """A block whose ops each read the tensor before them."""
    dims = draw(st.dictionaries(NAMES, st.integers(1, 2**40), min_size=1, max_size=4))
    some = st.lists(st.sampled_from(sorted(dims)), unique=True, max_size=3).map(tuple)
    tensors = {"x": draw(some)}
    ops: list[Op] = []
    for index in range(draw(st.integers(1, 4))):
        tensors[f"y{index}"] = draw(some)
        weight = Weight(name="w", dims=draw(some), trainable=draw(st.booleans()))
        op = Op(
            name=f"y{index}",
            kind=draw(st.sampled_from(["linear", "norm", "bias"])),
            inputs=(list(tensors)[-2],),
            outputs=(f"y{index}",),
            weights=(weight,) if draw(st.booleans()) else (),
            tp_dims=draw(some),
            attributes=draw(st.dictionaries(NAMES, ATTRIBUTES, max_size=3)),
        )
        ops.append(op)
    last = list(tensors)[-1]
    return Block(name=name, dims=dims, tensors=tensors, ops=tuple(ops), inputs=("x",), output=last)


@st.composite
def graphs(draw: st.DrawFn) -> ModelGraph:
    """Any small graph that the rules allow."""
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    blocks = {name: draw(chains(name)) for name in names}
    some = st.lists(st.sampled_from(names), max_size=3).map(tuple)
    layers = draw(st.lists(st.sampled_from(names), min_size=1, max_size=9).map(tuple))
    paths = [f"{b.name}.{op.name}.w" for b in blocks.values() for op in b.ops if op.weights]
    return ModelGraph(
        name=draw(st.text(max_size=9)),
        family=draw(NAMES),
        blocks=blocks,
        layers=layers,
        prologue=draw(some),
        epilogue=draw(some),
        mtp=draw(some),
        ties=tuple(Tie(owner=path, copy=path) for path in paths[:1]),
        components=(Component(name="side", blocks=((names[0], 2),)),)
        if draw(st.booleans())
        else (),
        boundaries={len(layers): (names[0],)} if draw(st.booleans()) else {},
        max_sequence_length=draw(st.none() | st.integers(1, 9999)),
        assumptions=tuple(draw(st.lists(st.text(max_size=9), max_size=2))),
    )


@given(graph=graphs())
def test_writing_and_reading_undo_each_other(graph: ModelGraph) -> None:
    document = graph_document(graph)

    assert graph_from(document) == graph
    assert read_graph(json.loads(json.dumps(document))) == graph
    assert load_document(json.dumps(document)) == document


@pytest.mark.parametrize("name", COUNTS)
def test_every_bundled_model_survives(name: str) -> None:
    graph = load_model(name)

    assert read_graph(graph_document(graph)) == graph


def small() -> dict[str, Any]:
    return {
        "schema": "haplan.graph/v1",
        "name": "two layers",
        "family": "own",
        "blocks": {
            "layer": {
                "dims": {"hidden": 8, "ffn": 16},
                "tensors": {"x": ["hidden"], "up": ["ffn"], "down": ["hidden"]},
                "inputs": ["x"],
                "output": "down",
                "ops": [
                    {
                        "name": "up",
                        "kind": "linear",
                        "inputs": ["x"],
                        "outputs": ["up"],
                        "weights": [{"name": "weight", "dims": ["ffn", "hidden"]}],
                        "tp_dims": ["ffn"],
                    },
                    {
                        "name": "down",
                        "kind": "linear",
                        "inputs": ["up"],
                        "outputs": ["down"],
                        "weights": [{"name": "weight", "dims": ["hidden", "ffn"]}],
                        "tp_dims": ["ffn"],
                    },
                ],
            }
        },
        "layers": [{"block": "layer", "count": 2}],
    }


def violations(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InputError) as error:
        read_graph(document)
    return {violation.field: violation.rule for violation in error.value.violations}


def test_what_may_be_left_out_is_left_out() -> None:
    graph = read_graph(small())

    assert (graph.num_layers, graph.prologue, dict(graph.streams)) == (2, (), {"main": None})


def test_malformed_fields_are_named_together() -> None:
    document = small()
    block = document["blocks"]["layer"]
    block["dims"]["hidden"] = 0
    block["dims"]["ffn"] = "16"
    block["ops"][0]["colour"] = "blue"
    del document["name"]

    assert set(violations(document)) == {
        "/blocks/layer/dims/hidden",
        "/blocks/layer/dims/ffn",
        "/blocks/layer/ops/0/colour",
        "/name",
    }


def test_names_that_do_not_fit_are_found_together() -> None:
    document = small()
    block = document["blocks"]["layer"]
    block["ops"][0]["inputs"] = ["down"]
    block["ops"][0]["tp_dims"] = ["fnn"]
    block["ops"][1]["weights"][0]["dims"] = ["hidden", "hidden"]
    block["ops"][1]["kind"] = "quantum"
    document["layers"].append({"block": "attention"})
    document["ties"] = [{"owner": "layer.up.weight", "copied_to": "layer.up.bias"}]
    document["boundaries"] = [{"before_layer": 9, "blocks": ["layer"]}]

    assert set(violations(document)) == {
        "/blocks/layer/ops/0/inputs/0",
        "/blocks/layer/ops/0/tp_dims",
        "/blocks/layer/ops/1/weights/0/dims",
        "/blocks/layer/ops/1/kind",
        "/layers",
        "/ties/0/copied_to",
        "/boundaries",
    }


def test_ties_join_weights_of_one_size() -> None:
    document = small()
    document["blocks"]["layer"]["ops"][1]["weights"][0]["dims"] = ["hidden"]
    document["ties"] = [{"owner": "layer.up.weight", "copied_to": "layer.down.weight"}]

    assert violations(document) == {"/ties/0": "must join weights of one size"}


def test_too_many_layers_are_refused() -> None:
    document = small()
    document["layers"] = [{"block": "layer", "count": 4096}, {"block": "layer", "count": 1}]

    assert violations(document) == {"/layers": "must be at most 4096"}
