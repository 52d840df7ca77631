"""Reading models: names, files, documents, and the rules of configs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from costmodel.errors import InputError
from costmodel.model.document import graph_document
from costmodel.model.graph import Block, ModelGraph, Op
from costmodel.model.parameters import parameter_counts
from costmodel.model.read import catalogue_config, load_model


def changed(name: str, **keys: Any) -> ModelGraph:
    """A bundled config with other values; None is written as null."""
    return load_model({"config": catalogue_config(name) | keys})


def without(name: str, *keys: str) -> dict[str, Any]:
    config = catalogue_config(name)
    return {"config": {key: value for key, value in config.items() if key not in keys}}


def op_of(block: Block, name: str) -> Op:
    return next(op for op in block.ops if op.name == name)


def elements(graph: ModelGraph, block: str, op: str) -> int:
    found = graph.blocks[block]
    return found.elements(op_of(found, op).weights[0].dims)


def test_explicit_head_dim_wins() -> None:
    """Gemma3-270m: q is 4 x 256 = 1,024 wide, not hidden 640 (gpt-neox#1434)."""
    sizes = {"hidden_size": 640, "num_attention_heads": 4, "head_dim": 256}

    assert elements(changed("gemma3-1b", **sizes), "full", "q") == 1024 * 640


def test_fused_qkv_of_qwen3_32b() -> None:
    """64 heads and 8 kv heads of 128: 10,240 rows together (TensorRT-LLM#5912)."""
    graph = load_model("qwen3-32b")
    rows = sum(elements(graph, "layer", op) for op in "qkv") // 5120

    assert rows == 10_240


def test_heads_may_be_wider_than_the_stream() -> None:
    """64 heads of 128 over hidden 6,144 is legal (MiniMax-01#29)."""
    sizes = {"hidden_size": 6144, "num_attention_heads": 64, "head_dim": 128}

    assert elements(changed("qwen3-8b", **sizes), "layer", "o") == 8192 * 6144


@pytest.mark.parametrize("sentinel", [0, -1, None])
def test_head_dim_sentinels_mean_absent(sentinel: int | None) -> None:
    graph = changed("llama3-8b", head_dim=sentinel)

    assert graph.blocks["layer"].dims["qk_dim"] == 128


def test_missing_or_null_kv_heads_are_the_heads() -> None:
    null = changed("llama3-8b", num_key_value_heads=None)
    missing = load_model(without("llama3-8b", "num_key_value_heads"))

    assert null.blocks["layer"].dims["kv_heads"] == 32
    assert missing.blocks == null.blocks


def test_query_rank_null_is_a_direct_projection_and_missing_is_an_error() -> None:
    direct = load_model("deepseek-v2-lite")
    ranked = changed("deepseek-v2-lite", q_lora_rank=1536)

    assert parameter_counts(ranked).total - parameter_counts(direct).total == 42_508_800
    with pytest.raises(InputError, match="/q_lora_rank: is needed"):
        load_model(without("deepseek-v2-lite", "q_lora_rank"))


def test_qwen_width_is_gate_and_up_together() -> None:
    assert load_model("qwen-1.8b").blocks["layer"].dims["ffn"] == 5504


def test_nemotron_nas_has_layers_without_attention() -> None:
    graph = load_model("nemotron-super-49b")
    without_attention = [
        name
        for name in graph.layers
        if all(op.kind != "attention" for op in graph.blocks[name].ops)
    ]

    assert len(without_attention) == 31


def test_language_model_is_found_under_text_config() -> None:
    graph = load_model("qwen3.5-122b-a10b")

    assert graph.blocks["attention"].dims["experts"] == 256


def test_text_config_that_is_missing_is_an_error_and_no_default_model() -> None:
    with pytest.raises(InputError, match="/hidden_size: is needed"):
        load_model(without("qwen3-vl-8b", "text_config"))


def test_unknown_model_type_offers_near_families() -> None:
    with pytest.raises(InputError, match="--as-family qwen3_moe"):
        load_model({"config": {"model_type": "qwen3_moee"}})


def test_missing_model_type_can_be_given_as_family() -> None:
    document = without("llama3-8b", "model_type")

    with pytest.raises(InputError, match="/model_type"):
        load_model(document)
    graph = load_model(document, as_family="llama")
    assert parameter_counts(graph).total == 8_030_261_248


def test_a_language_family_reads_the_text_config_of_an_unknown_type() -> None:
    document = {"config": {"model_type": "new_vl", "text_config": catalogue_config("gemma3-1b")}}
    graph = load_model(document, as_family="gemma3_text")

    assert parameter_counts(graph).total == 999_885_952
    assert graph.assumptions == (
        "only text_config was read: what stands beside the language model is left out",
    )


def test_unknown_family_is_an_error() -> None:
    with pytest.raises(InputError, match="did you mean llama"):
        load_model("llama3-8b", as_family="lama")


def test_a_misspelt_name_gets_suggestions() -> None:
    with pytest.raises(InputError, match="llama3-70b"):
        load_model("lama3-70b")


def test_config_file_and_directory(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(catalogue_config("llama3-8b")), encoding="utf-8")
    expected = replace(load_model("llama3-8b"), name=tmp_path.name)

    assert load_model(path) == expected
    assert load_model(str(tmp_path)) == expected


def test_infinite_numbers_of_mamba_configs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    text = json.dumps(catalogue_config("nemotron-h-56b") | {"time_step_limit": [0.0, 1.0]})
    path.write_text(text.replace("[0.0, 1.0]", "[0.0, Infinity]"), encoding="utf-8")

    assert load_model(path).num_layers == 118


def test_graph_file(tmp_path: Path) -> None:
    graph = load_model("gpt2")
    path = tmp_path / "model.json"
    path.write_text(json.dumps(graph_document(graph)), encoding="utf-8")

    assert load_model(path) == graph
    assert load_model({"graph": graph_document(graph)}) == graph


@pytest.mark.parametrize("source", [{}, {"config": {}, "graph": {}}, {"config": 1}, {"model": {}}])
def test_a_mapping_must_hold_one_config_or_graph(source: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="exactly one"):
        load_model(source)


def test_sizes_that_are_no_sizes_are_refused_together() -> None:
    with pytest.raises(InputError) as error:
        changed("llama3-8b", hidden_size="4096", vocab_size=-1, num_hidden_layers=1.5)

    fields = [violation.field for violation in error.value.violations]
    assert fields == ["/hidden_size", "/vocab_size", "/num_hidden_layers"]


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match="must divide the number of heads"):
        changed("llama3-8b", num_key_value_heads=5)


@pytest.mark.parametrize("name", ["minimax-m3", "step-3.7-flash"])
def test_models_nobody_has_counted_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="no independent parameter count exists"):
        load_model(name)


@pytest.mark.parametrize("kind", [None, 7, ["llama"]])
def test_a_model_type_that_is_no_text_is_refused(kind: object) -> None:
    with pytest.raises(InputError, match="/model_type"):
        changed("llama3-8b", model_type=kind)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("deepseek-v3", "num_nextn_predict_layers"),
        ("glm-4.5", "num_nextn_predict_layers"),
        ("deepseek-v4-flash", "num_nextn_predict_layers"),
        ("nemotron-3-super-120b-a12b", "num_nextn_predict_layers"),
    ],
)
def test_a_million_prediction_blocks_are_refused(name: str, key: str) -> None:
    with pytest.raises(InputError) as caught:
        changed(name, **{key: 1_000_000})
    assert f"/{key}" in str(caught.value)
    assert "from 0 to 16" in str(caught.value)
