"""Reports on heads, kv groups, sequences and the vocabulary."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.job import Job
from costmodel.layout.read import load_layout
from costmodel.layout.rules import warnings
from costmodel.layout.shards import padded_vocabulary
from costmodel.model.graph import ModelGraph
from costmodel.model.parameters import parameter_counts
from costmodel.model.read import catalogue_config, load_model
from tests.reports.catalogue import report
from tests.reports.setting import asked, dense, is_legal, named, refusals


def vocabulary(size: int, divisor: int, tp: int) -> int:
    """Rows of the embedding on all tp ranks together."""
    job = Job(global_batch_size=1, sequence_length=1, vocab_divisor=divisor)
    return padded_vocabulary(size, job, tp)


def tp_fault(graph: ModelGraph, tp: int, **job: Any) -> str:
    """What is wrong with this tp on one node, as text."""
    return "\n".join(refusals(asked(graph, 8, **job), f"tp={tp},sp=off"))


@report("21")
def test_two_kv_heads_bound_tp() -> None:
    graph = dense(num_key_value_heads=2)

    assert "must divide the 2 kv heads" in tp_fault(graph, 4)
    assert "use tp 2" in tp_fault(graph, 4)
    assert tp_fault(graph, 2) == ""


@report("22")
def test_kv_heads_are_not_replicated() -> None:
    fault = tp_fault(dense(num_key_value_heads=2), 8)

    assert "must divide the 2 kv heads (replicating them is not offered)" in fault


@report("23")
@pytest.mark.parametrize("name", ["qwen3.5-122b-a10b", "qwen3.5-397b-a17b"])
def test_hybrid_qwen_runs_with_tp_two_at_most(name: str) -> None:
    where = asked(named(name), 8)

    assert [tp for tp in (1, 2, 4, 8) if is_legal(where, f"tp={tp}")] == [1, 2]


@report("25")
def test_twenty_five_heads() -> None:
    graph = named("gpt2-xl")

    assert "must divide the 25 attention heads" in tp_fault(graph, 2)
    assert "use tp 1 or 5" in tp_fault(graph, 2)
    assert tp_fault(graph, 5) == ""
    assert "must divide the vocabulary of 50257" in tp_fault(graph, 5, vocab_divisor=1)


@report("26")
def test_heads_of_a_vision_tower_do_not_bind() -> None:
    config = catalogue_config("qwen3-vl-8b")
    tower = config["vision_config"] | {"hidden_size": 1600, "num_heads": 25}
    where = asked(load_model({"config": config | {"vision_config": tower}}), 8)
    layout = load_layout(where, "tp=4")

    (warning,) = [text for text in warnings(where, layout) if "replicated" in text]
    assert "25" in warning


@report("27")
def test_groups_that_do_not_fill_a_node() -> None:
    graph = dense(
        hidden_size=5120,
        num_attention_heads=40,
        num_key_value_heads=40,
        intermediate_size=13_760,
    )
    where = asked(graph, 8)
    layout = load_layout(where, "tp=5,sp=off")

    assert "must divide the 40 attention heads" in tp_fault(graph, 3)
    assert any("leaves 3 of 8 chips" in text for text in warnings(where, layout))


@report("29")
def test_three_way_splits() -> None:
    where = asked(named("deepseek-v3"), 192, global_batch_size=192, sequence_length=4608)
    fault = "\n".join(refusals(where, "tp=1,dp=3,ep=3"))

    assert "must divide the 256 experts" in fault
    assert "must divide the 64 attention heads" in tp_fault(named("llama3-70b"), 3)
    for ep in (1, 2, 4, 8, 16, 32, 64):
        assert is_legal(where, f"tp=1,dp=64,ep={ep}")
    heads = dense(num_attention_heads=64, num_key_value_heads=64, head_dim=16)
    for tp in (1, 2, 4, 8, 16, 32, 64):
        assert is_legal(asked(heads, 64), f"tp={tp}")


@report("30")
def test_every_dimension_that_does_not_divide_is_named() -> None:
    fault = tp_fault(dense(num_attention_heads=10, num_key_value_heads=5, head_dim=64), 3)

    assert "must divide the 10 attention heads" in fault
    assert "must divide the 5 kv heads" in fault
    assert "must divide the feed-forward width 4096" in fault


@report("33")
def test_sequence_that_does_not_divide() -> None:
    graph = dense(max_position_embeddings=65_536)
    fault = "\n".join(refusals(asked(graph, 8, sequence_length=57_826), "tp=8"))

    assert "pad the sequence to 57832" in fault
    assert is_legal(asked(graph, 8, sequence_length=57_832), "tp=8")


@report("34")
@given(st.integers(1, 512), st.sampled_from([2, 4, 8]))
def test_ring_cuts_a_sequence_in_twice_as_many_parts(length: int, cp: int) -> None:
    where = asked(dense(), 8, sequence_length=length)

    assert is_legal(where, f"cp={cp}") == (length % (2 * cp) == 0)


@report("35")
@pytest.mark.parametrize(("tp", "rows"), [(1, 50_304), (2, 50_432), (8, 51_200)])
def test_vocabulary_of_gpt2(tp: int, rows: int) -> None:
    assert vocabulary(50_257, 128, tp) == rows


@report("37")
def test_odd_vocabulary_is_padded_and_not_counted() -> None:
    odd, even = dense(vocab_size=65_535), dense(vocab_size=65_536)

    assert vocabulary(65_535, 1, 2) == 65_536
    assert tp_fault(odd, 2) == ""
    rows = parameter_counts(even).total - parameter_counts(odd).total
    assert rows == 2 * 1024


@report("38")
def test_length_of_a_tokenizer() -> None:
    assert vocabulary(151_669, 128, 4) == 152_064


@report("39")
@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_vocabulary_is_not_multiplied_by_tp(tp: int) -> None:
    graph = named("qwen3-8b")

    assert vocabulary(151_936, 1, tp) == 151_936
    assert 0 <= vocabulary(151_936, 128, tp) - 151_936 < 128 * tp
    assert {b.dims["vocab"] for b in graph.blocks.values() if "vocab" in b.dims} == {151_936}


@report("41")
def test_odd_vocabulary_without_padding() -> None:
    graph = dense(vocab_size=50_257)

    assert "must divide the vocabulary of 50257" in tp_fault(graph, 2, vocab_divisor=1)
    assert tp_fault(graph, 2) == ""


@report("42")
def test_vocabulary_over_six_ranks() -> None:
    graph = dense(
        vocab_size=151_552,
        num_attention_heads=96,
        num_key_value_heads=96,
        head_dim=16,
        intermediate_size=12_288,
    )
    fault = tp_fault(graph, 6, vocab_divisor=1)

    assert "must divide the vocabulary of 151552" in fault
    assert fault.count("\n") == 0
    assert tp_fault(graph, 6) == ""
