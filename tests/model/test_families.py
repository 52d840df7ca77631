"""Conformance: what every family must do, tested over the registry."""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.model.family import families, family_of_type
from costmodel.model.graph import ModelGraph
from costmodel.model.placement import collectives, conversions
from costmodel.model.read import catalogue_config, load_model, model_names, read_config
from costmodel.model.reduce import Degrees, reduced, shrink_sizes
from costmodel.model.rules import check_graph

UNREAD = ("minimax-m3", "step-3.7-flash")
READ = [name for name in model_names() if name not in UNREAD]
EXAMPLES = {
    load_model(name).family: catalogue_config(name) for name in READ
}  # the last bundled config of each family


def test_every_family_has_a_bundled_example() -> None:
    assert set(EXAMPLES) == set(families())


def test_no_two_families_claim_one_model_type() -> None:
    claimed = [kind for family in families().values() for kind in family.model_types]

    assert len(claimed) == len(family_of_type())


@pytest.mark.parametrize("name", READ)
def test_graph_is_consistent(name: str) -> None:
    graph = load_model(name)

    check_graph(graph)
    assert graph.name == name
    assert graph.family in families()


@pytest.mark.parametrize("name", READ)
def test_every_change_of_placement_has_a_collective(name: str) -> None:
    for block in load_model(name).blocks.values():
        for conversion in conversions(block):
            for sequence_parallel in (False, True):
                collectives(conversion, sequence_parallel=sequence_parallel)


@pytest.mark.parametrize("name", READ)
def test_linear_weights_are_outputs_then_contracted_inputs(name: str) -> None:
    for block in load_model(name).blocks.values():
        for op in block.ops:
            if op.kind == "linear":
                source, out = block.tensors[op.inputs[0]], block.tensors[op.outputs[0]]
                contracted = tuple(dim for dim in source if dim not in out)
                assert op.weights[0].dims == out + contracted
                assert set(op.tp_dims) <= set(out + contracted)


@pytest.mark.parametrize("name", READ)
def test_reduced_graph_is_consistent_and_divides(name: str) -> None:
    graph = load_model(name)
    for degrees in (Degrees(), Degrees(tp=4, ep=4, etp=2), Degrees(tp=3, ep=6)):
        small = reduced(graph, shrink_sizes(graph, degrees), sequence_length=16)

        check_graph(small)
        assert (small.layers, small.mtp) == (graph.layers, graph.mtp)
        assert_divides(small, degrees)


def assert_divides(graph: ModelGraph, degrees: Degrees) -> None:
    for block in graph.blocks.values():
        for op in block.ops:
            assert all(block.dims[dim] % degrees.tp == 0 for dim in op.tp_dims)
            if op.kind == "experts":
                assert block.dims["experts"] % degrees.ep == 0
                assert block.dims["expert_ffn"] % degrees.etp == 0
                assert int(op.attributes["top_k"]) < block.dims["experts"]


@pytest.mark.parametrize("family", families())
def test_all_missing_keys_come_in_one_answer(family: str) -> None:
    with pytest.raises(InputError) as error:
        read_config({"model_type": families()[family].model_types[0]})

    fields = [violation.field for violation in error.value.violations]
    assert len(fields) >= 3
    assert len(set(fields)) == len(fields)


def texts_or_numbers() -> st.SearchStrategy[Any]:
    odd: list[Any] = [
        None,
        True,
        -1,
        0,
        1.5,
        1e300,
        float("inf"),
        2**50,
        "8",
        [],
        [1],
        {},
        {"a": 1},
        [[]],
        ["full_attention"],
    ]
    return st.sampled_from(odd)


@pytest.mark.parametrize("family", families())
@given(data=st.data())
def test_a_damaged_config_is_read_or_refused(family: str, data: st.DataObject) -> None:
    config = damaged(EXAMPLES[family], data)
    try:
        graph = read_config(config, as_family=family)
    except InputError:
        return
    check_graph(graph)


def damaged(config: Mapping[str, Any], data: st.DataObject) -> dict[str, Any]:
    """The config without some keys and with odd values for others, also inside its parts."""
    result = dict(config)
    for key in data.draw(st.sets(st.sampled_from(sorted(config)), max_size=3)):
        if isinstance(result[key], dict) and data.draw(st.booleans()):
            result[key] = damaged(result[key], data) if result[key] else {}
        elif data.draw(st.booleans()):
            result[key] = data.draw(texts_or_numbers())
        else:
            del result[key]
    return result


def test_a_model_of_126_layers_is_read_quickly() -> None:
    def seconds() -> float:
        start = time.perf_counter()
        load_model("llama3.1-405b")
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.02
