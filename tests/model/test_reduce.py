"""Reduced models keep what makes the model what it is."""

import pytest

from costmodel.model.graph import ModelGraph
from costmodel.model.parameters import parameter_counts
from costmodel.model.read import load_model
from costmodel.model.reduce import Degrees, reduced, shrink_sizes


def shrunk(name: str, **degrees: int) -> ModelGraph:
    graph = load_model(name)
    return reduced(graph, shrink_sizes(graph, Degrees(**degrees)), sequence_length=16)


def test_grouped_queries_stay_grouped() -> None:
    dims = shrunk("llama3-70b", tp=8).blocks["layer"].dims

    assert dims["heads"] > dims["kv_heads"] == 8
    assert dims["ffn"] > dims["hidden"]


def test_parts_of_a_head_add_up() -> None:
    block = shrunk("deepseek-v3").blocks["moe"]

    assert block.dims["qk_dim"] == block.dims["nope_dim"] + block.dims["rope_dim"]
    assert block.dims["qk_dim"] != block.dims["v_dim"]
    rotary = next(op for op in block.ops if op.name == "q_rotary")
    assert rotary.attributes["size"] == block.dims["rope_dim"]


def test_windows_still_cut() -> None:
    attention = {
        name: next(op for op in block.ops if op.kind == "attention").attributes["window"]
        for name, block in shrunk("gemma2-9b").blocks.items()
        if name in ("window", "full")
    }

    assert attention == {"window": 8, "full": 0}


def test_ties_still_fit() -> None:
    graph = shrunk("deepseek-v3", tp=4)

    assert graph.ties == load_model("deepseek-v3").ties
    assert parameter_counts(graph).mtp > 0


@pytest.mark.parametrize("name", ["llama3-70b", "qwen3-235b-a22b", "deepseek-v3"])
def test_a_layer_is_small(name: str) -> None:
    graph = shrunk(name, tp=4, ep=4)

    assert parameter_counts(graph).total < 20_000 * graph.num_layers


def test_components_are_left_out() -> None:
    graph = shrunk("qwen3-vl-8b")

    assert graph.components == ()
    assert set(graph.blocks) == {"embedding", "layer", "head"}
