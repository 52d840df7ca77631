"""Reports on memory estimates that were wrong."""

from collections import Counter
from math import prod

import pytest

from costmodel.errors import InputError
from costmodel.evaluation import StageMemory
from costmodel.layout.read import load_layout
from costmodel.layout.shards import holdings
from costmodel.model.flops import flops_per_token
from costmodel.model.parameters import parameter_counts
from costmodel.model.read import catalogue_config, load_model
from costmodel.problem import Problem
from tests.reports.catalogue import report
from tests.reports.setting import asked, chips, dense, estimated, named, sparse

GIB = 2**30


def memories(where: Problem, line: str) -> list[StageMemory]:
    """Memory of each stage of the first pipeline."""
    return [stage.memory for stage in estimated(where, line).evaluation.stages[0]]


@report("62")
def test_memory_follows_the_layers_of_a_stage() -> None:
    where = asked(dense(vocab_size=128), 4)
    first, second, third, last = memories(where, "pp=4,layers=1/2/2/3")

    assert second.weights == third.weights
    assert first.weights < second.weights < last.weights
    layer = last.weights - second.weights
    assert second.weights == pytest.approx(2 * layer, rel=0.02)


@report("63")
def test_each_kind_of_weight_has_its_own_divisor() -> None:
    graph = sparse(num_nextn_predict_layers=0)
    where = asked(graph, 8)
    layout = load_layout(where, "tp=2,dp=4,ep=4,etp=2")
    held: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for holding in holdings(graph, layout, where.job):
        if holding.rank == 0 and holding.parameter.startswith("layers.7."):
            rows = [stop - start for start, stop in holding.box]
            name = holding.parameter.removeprefix("layers.7.")
            held[name] = prod(rows)
            whole[name] = prod(holding.sizes)

    def divisor(name: str) -> float:
        return whole[name] / held[name]

    assert divisor("experts.gate") == divisor("experts.down") == 8
    assert divisor("q_b.weight") == divisor("o.weight") == divisor("shared_up.weight") == 2
    assert divisor("router.weight") == divisor("attention_norm.scale") == 1
    assert divisor("kv_a.weight") == 1


@report("65")
def test_weights_of_latent_attention() -> None:
    graph = sparse(num_nextn_predict_layers=0)
    hidden, heads, q_rank, kv_rank, nope, rope, v = 1024, 16, 256, 128, 64, 32, 64
    attention = (
        hidden * q_rank
        + q_rank
        + q_rank * heads * (nope + rope)
        + hidden * (kv_rank + rope)
        + kv_rank
        + kv_rank * heads * (nope + v)
        + heads * v * hidden
    )
    dense_layer = attention + 2 * hidden + 3 * hidden * 4096
    two_stages = memories(asked(graph, 2), "pp=2,layers=1/7")

    assert two_stages[0].weights == 2 * (dense_layer + 32_000 * hidden)
    assert sum(m.weights for m in two_stages) == 2 * parameter_counts(graph).total


@report("71")
def test_each_zero_stage_shards_one_kind_more() -> None:
    where = asked(dense(), 8)
    none, one, two, three = (memories(where, f"dp=8,zero={zero}")[0] for zero in range(4))

    assert one.optimizer == pytest.approx(none.optimizer / 8)
    assert (one.gradients, one.weights) == (none.gradients, none.weights)
    assert two.gradients == pytest.approx(none.gradients / 8)
    assert two.weights == none.weights
    assert three.weights == pytest.approx(none.weights / 8)
    assert three.optimizer == one.optimizer


@report("74")
def test_weights_are_total_and_arithmetic_is_active() -> None:
    graph = named("qwen3.5-122b-a10b")
    counts = parameter_counts(graph)
    memory = memories(asked(graph, chips(8)), "dp=8,ep=1")[0]

    assert counts.total > 120e9
    assert memory.weights >= 2 * counts.total
    assert 6 * counts.active / 2 < flops_per_token(graph, 4096) < 6 * counts.total / 5


@report("75")
def test_mixtral_is_not_read_as_dense() -> None:
    graph = named("mixtral-8x7b")

    assert parameter_counts(graph).total == 46_702_792_704
    assert graph.ties == ()


@report("77")
def test_text_config_is_read_and_nothing_is_made_up() -> None:
    config = catalogue_config("qwen3-vl-8b")
    text = config["text_config"]
    graph = load_model({"config": config})

    assert graph.num_layers == text["num_hidden_layers"]
    without = {key: value for key, value in text.items() if key != "hidden_size"}
    with pytest.raises(InputError, match="hidden_size"):
        load_model({"config": config | {"text_config": without}})


@report("79")
def test_logits_are_part_of_the_peak() -> None:
    where = asked(dense(vocab_size=151_936), 2, sequence_length=8192)
    first, last = memories(where, "pp=2")
    logits = 8192 * 151_936 * 4

    assert logits / GIB == pytest.approx(4.64, abs=0.01)
    assert last.transient >= logits
    assert first.transient < logits


@report("81")
@pytest.mark.parametrize(("tp", "cp"), [(2, 1), (1, 2), (2, 2), (4, 2)])
def test_logits_shrink_with_tp_and_cp(tp: int, cp: int) -> None:
    where = asked(dense(vocab_size=262_144), 8)
    whole = memories(where, "pp=1")[0].transient
    split = memories(where, f"tp={tp},cp={cp}")[0].transient

    assert split == pytest.approx(whole / (tp * cp), rel=0.25)


@report("82")
def test_last_stage_has_the_largest_buffers() -> None:
    stages = memories(asked(dense(vocab_size=151_936), 4), "pp=4")

    assert all(stages[-1].transient > 3 * stage.transient for stage in stages[:-1])


@report("83")
def test_layer_inputs_of_a_long_sequence() -> None:
    graph = dense(
        num_hidden_layers=60,
        hidden_size=5376,
        num_attention_heads=32,
        num_key_value_heads=16,
        head_dim=128,
        intermediate_size=21_504,
        max_position_embeddings=262_144,
    )
    where = asked(
        graph, chips(8, "nvidia-h200-sxm-141g", scale_up="nvlink4"), sequence_length=256_000
    )
    memory = memories(where, "dp=8,zero=3,recompute=full")[0]

    assert memory.activations >= 60 * 256_000 * 5376 * 2
    assert memory.activations == pytest.approx(165e9, rel=0.05)
    assert memory.missing > 0
