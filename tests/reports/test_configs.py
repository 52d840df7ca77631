"""Reports on reading model configs."""

from typing import Any

import pytest

from costmodel.errors import InputError
from costmodel.model.graph import ModelGraph, Weight
from costmodel.model.parameters import parameter_counts
from costmodel.model.read import catalogue_config, load_model
from tests.reports.catalogue import report
from tests.reports.setting import dense, named


def changed(name: str, **changes: Any) -> ModelGraph:
    """A bundled model with some keys of its config changed."""
    return load_model({"config": catalogue_config(name) | changes})


def attention_weight(graph: ModelGraph, op_name: str) -> tuple[int, ...]:
    """Sizes of the dimensions of one weight in the first layer."""
    block = graph.blocks[graph.layers[0]]
    weights: list[Weight] = [w for op in block.ops if op.name == op_name for w in op.weights]
    return tuple(block.dims[dim] for dim in weights[0].dims)


def rows(graph: ModelGraph, op_name: str) -> int:
    """Rows of a projection: heads x size of a head."""
    heads, size, _ = attention_weight(graph, op_name)
    return heads * size


@report("103")
def test_heads_may_be_wider_than_the_stream() -> None:
    graph = changed("gemma3-1b", hidden_size=640, num_attention_heads=4, head_dim=256)

    assert rows(graph, "q") == 1024


@report("105")
def test_rows_of_query_key_and_value() -> None:
    graph = named("qwen3-32b")

    assert sum(rows(graph, name) for name in ("q", "k", "v")) == 10_240


@report("106")
def test_heads_wider_than_hidden_are_legal() -> None:
    graph = dense(hidden_size=6144, num_attention_heads=64, num_key_value_heads=8, head_dim=128)

    assert rows(graph, "q") == 8192
    assert attention_weight(graph, "q")[2] == 6144


@report("107")
@pytest.mark.parametrize(
    ("name", "size", "quotient"), [("mistral-nemo-12b", 128, 160), ("qwen3-32b", 128, 80)]
)
def test_explicit_head_size_wins(name: str, size: int, quotient: int) -> None:
    config = catalogue_config(name)

    assert config["hidden_size"] // config["num_attention_heads"] == quotient
    assert attention_weight(named(name), "q")[1] == size


@report("109")
def test_experts_are_counted_under_text_config() -> None:
    config = catalogue_config("qwen3.5-35b-a3b")
    graph = named("qwen3.5-35b-a3b")
    counts = {b.dims["experts"] for b in graph.blocks.values() if "experts" in b.dims}

    assert "num_experts" not in config
    assert counts == {config["text_config"]["num_experts"]}


@report("110")
def test_missing_kv_heads_are_as_many_as_heads() -> None:
    everywhere = dense(num_key_value_heads=16)

    assert dense(num_key_value_heads=None).blocks == everywhere.blocks
    config = catalogue_config("llama-7b")
    config.pop("num_key_value_heads", None)
    graph = load_model({"config": config})
    assert rows(graph, "k") == rows(graph, "q")


@report("111")
@pytest.mark.parametrize("sentinel", [0, -1, None])
def test_sentinel_for_the_head_size(sentinel: int | None) -> None:
    assert dense(head_dim=sentinel).blocks == dense().blocks


@report("113")
def test_null_and_missing_query_rank_differ() -> None:
    config = catalogue_config("deepseek-v2-lite")
    without = {key: value for key, value in config.items() if key != "q_lora_rank"}
    direct, compressed = (
        parameter_counts(changed("deepseek-v2-lite", q_lora_rank=rank)).total
        for rank in (None, 1536)
    )

    assert abs(direct - compressed) == 42_508_800
    with pytest.raises(InputError, match="q_lora_rank"):
        load_model({"config": without})


@report("114")
def test_gate_and_up_in_one_size() -> None:
    assert parameter_counts(named("qwen-1.8b")).total == 1_836_828_672


@report("115")
def test_layers_from_a_list_of_blocks() -> None:
    assert parameter_counts(named("nemotron-super-49b")).total == 49_867_145_216
