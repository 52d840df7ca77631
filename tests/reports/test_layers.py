"""Reports on layers that do not divide over stages."""

from itertools import permutations

import pytest

from costmodel.layout.read import load_layout
from costmodel.layout.split import balanced
from costmodel.step import evaluate
from tests.layout.problems import cluster, pool_document
from tests.reports.catalogue import report
from tests.reports.setting import (
    asked,
    dense,
    document,
    estimated,
    is_legal,
    layer_counts,
    named,
    refusals,
)


@report("1")
def test_thirty_layers_over_four_stages() -> None:
    where = asked(dense(num_hidden_layers=30), 4)
    (refusal,) = refusals(where, document([7, 7, 7, 7], 256))

    assert "must end at 30" in refusal
    assert "2 x 7, 2 x 8" in refusal
    for layers in set(permutations([8, 8, 7, 7])):
        assert is_legal(where, document(list(layers), 256))


@report("2")
def test_forty_layers_over_sixteen_stages() -> None:
    where = asked(dense(num_hidden_layers=40), 16)

    assert "8 x 2, 8 x 3" in refusals(where, "pp=16,layers=even")[0]
    assert refusals(where, document([2] * 16, 256)) != []
    assert is_legal(where, document([3] * 8 + [2] * 8, 256))
    assert sorted(layer_counts(where, "pp=16")) == [2] * 8 + [3] * 8


@report("3")
@pytest.mark.parametrize("layers", [[3, 4], [4, 3]])
def test_seven_layers_over_two_stages(layers: list[int]) -> None:
    where = asked(dense(num_hidden_layers=7), 2)

    assert is_legal(where, document(layers, 256))
    assert refusals(where, "pp=2,layers=even")


@report("5")
def test_remainder_goes_to_the_last_stages() -> None:
    where = asked(dense(num_hidden_layers=12), 5, global_batch_size=250)

    assert layer_counts(where, "pp=5") == [2, 2, 2, 3, 3]


@report("6")
def test_first_and_last_stage_may_be_shorter() -> None:
    where = asked(dense(num_hidden_layers=9), 4)

    assert layer_counts(where, "pp=4,first=2,last=1") == [2, 3, 3, 1]


@report("7")
def test_rounding_up_must_not_leave_empty_stages() -> None:
    where = asked(dense(num_hidden_layers=42), 16)
    found = refusals(where, document([3] * 14 + [0, 0], 256))

    assert any("/stages/14/chunks" in text and "must hold a layer" in text for text in found)
    assert sorted(balanced(42, 16)) == [2] * 6 + [3] * 10
    assert sorted(layer_counts(where, "pp=16")) == [2] * 6 + [3] * 10


@report("9")
def test_head_of_a_huge_vocabulary_weighs_as_several_layers() -> None:
    where = asked(dense(vocab_size=262_144), 2)
    even = evaluate(where, load_layout(where, "pp=2,layers=4/4"))
    fewer_last = evaluate(where, load_layout(where, "pp=2,layers=6/2"))
    first, last = even.stages[0]

    assert last.time.forward_s > 2 * first.time.forward_s
    assert fewer_last.step_time_s < 0.9 * even.step_time_s


@report("10")
@pytest.mark.parametrize("microbatches", [2, 64])
def test_early_stages_keep_more_microbatches(microbatches: int) -> None:
    where = asked(dense(), 4, global_batch_size=microbatches)
    stages = estimated(where, "pp=4").evaluation.stages[0]
    kept = [stage.memory.activations for stage in stages[:3]]

    assert [s.in_flight for s in stages] == [min(microbatches, 4 - i) for i in range(4)]
    assert kept == sorted(kept, reverse=True)
    if microbatches == 64:
        assert kept[0] > kept[1] > kept[2]


@report("11")
def test_worked_layout_of_a_reader() -> None:
    where = asked(
        dense(num_hidden_layers=36, hidden_size=4096, num_attention_heads=32),
        128,
        global_batch_size=512,
    )
    layout = load_layout(where, "tp=4,pp=4,dp=8,mbs=1")
    (pipeline,) = layout.pipelines

    assert pipeline.count * pipeline.stages[0].option.replicas == 8
    assert pipeline.microbatches == 64
    assert [stage.num_layers for stage in pipeline.stages] == [9] * 4


@report("13")
def test_layers_follow_the_memory_of_the_cards() -> None:
    large = pool_document("a", 1)
    small = pool_document("b", 1, chip="nvidia-a100-sxm-40g")
    where = asked(named("codellama-34b"), cluster(large, small))
    capacity = [pool.usable_bytes for pool in where.cluster.pools]
    in_proportion = round(48 * capacity[0] / sum(capacity))
    fits = [
        estimated(where, f"tp=8,pp=2,mbs=2,recompute=full,layers={first}/{48 - first}").fits
        for first in (24, in_proportion)
    ]

    assert in_proportion == 32
    assert fits == [False, True]
