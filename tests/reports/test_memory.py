"""Reports on what fits, and on tied embeddings under pipeline parallelism."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from costmodel.layout.instances import stage_instances
from costmodel.layout.read import load_layout
from costmodel.layout.rules import violations
from costmodel.layout.shards import gradient_groups, holdings
from costmodel.layout.uniform import Uniform, uniform_layout
from costmodel.model.graph import Block, ModelGraph, Op
from costmodel.model.parameters import block_parameters, op_parameters, parameter_counts
from costmodel.problem import Problem
from costmodel.step import evaluate
from tests.reports.catalogue import report
from tests.reports.setting import asked, chips, dense, estimated, named

GIB = 2**30


@report("85")
def test_deepseek_on_256_chips() -> None:
    where = chips(
        256,
        "nvidia-gb300-288g",
        scale_up="nvlink5-nvl72",
        chips_per_node=4,
        overrides={"chip": {"memory": "276 GiB"}},
    )
    job = {"sequence_length": 4096, "global_batch_size": 4096}
    problem = asked(named("deepseek-v3"), where, **job)
    local = estimated(problem, "dp=256,ep=2,mbs=4,zero=3").evaluation.stages[0][0]
    staged = "pp=8,vp=4,dp=32,ep=32,mbs=1,layout=Et*2|(tt|)*29t|mL"

    assert local.memory.peak > 276 * GIB
    assert estimated(problem, staged).fits


def any_fits(where: Problem, number: int) -> bool:
    """Whether any uniform layout with full recomputation on so many chips fits."""
    for tp, pp, zero in product((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 3)):
        if number % (tp * pp):
            continue
        uniform = Uniform(tp=tp, pp=pp, dp=number // (tp * pp), zero=zero, recompute="full")
        parsed = uniform_layout(where, uniform)
        assert parsed.broken == violations(where, parsed.layout) == ()
        if evaluate(where, parsed.layout).fits:
            return True
    return False


@report("86")
@pytest.mark.parametrize(("number", "fits"), [(16, False), (32, True)])
def test_fewest_cards_for_seventy_billion(number: int, fits: bool) -> None:
    where = asked(named("llama2-70b"), number, global_batch_size=1024)

    assert any_fits(where, number) is fits


@report("87")
def test_falcon_loads_and_then_does_not_fit() -> None:
    where = asked(named("falcon-40b"), 8, sequence_length=2048)
    found = estimated(where, "tp=8,recompute=full")
    memory = found.evaluation.stages[0][0].memory
    main_weights = memory.optimizer / 3

    assert memory.weights + memory.gradients + main_weights == pytest.approx(50e9, rel=0.05)
    assert not found.fits


@report("89")
def test_seven_billion_in_single_precision() -> None:
    graph = named("llama-7b")
    where = asked(graph, 1, sequence_length=2048, precision="fp32", vocab_divisor=1)
    found = estimated(where, "dp=1")
    memory = found.evaluation.stages[0][0].memory

    assert memory.weights + memory.optimizer == 12 * parameter_counts(graph).total
    assert memory.weights + memory.optimizer == pytest.approx(84e9, rel=0.05)
    assert not found.fits


@report("90")
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("name", ["llama2-70b", "llama3-70b"])
def test_seventy_billion_on_one_or_two_cards(name: str, number: int) -> None:
    where = asked(named(name), chips(number, "nvidia-h100-sxm-80g", scale_up="nvlink4"))

    assert not any_fits(where, number)


@report("91")
@pytest.mark.parametrize(("number", "fits"), [(2, False), (4, True)])
def test_seven_billion_on_two_and_four_cards(number: int, fits: bool) -> None:
    cards = chips(number, "nvidia-a800-sxm-80g", scale_up="nvlink3-a800")
    where = asked(named("llama2-7b"), cards, sequence_length=2048)

    assert estimated(where, f"tp=2,dp={number // 2},mbs=4").fits is fits


@report("93")
@pytest.mark.parametrize("mode", ["none", "selective", "full"])
def test_deepseek_flash_on_32_cards(mode: str) -> None:
    where = asked(named("deepseek-v4-flash"), chips(32, "nvidia-h100-sxm-80g", scale_up="nvlink4"))
    found = estimated(where, f"pp=4,dp=8,ep=8,mbs=1,recompute={mode}")

    assert found.evaluation.num_chips == 32
    assert not found.fits


@report("95")
def test_stored_attention_scores_are_counted() -> None:
    """Scores of softmax(q k^T), 2 bytes a head and pair of tokens, on every layer in flight."""
    fused = named("opt-13b")
    where = asked(fused, 8, sequence_length=2048)
    stored = replace(where, model=with_stored_scores(fused))
    layout = "dp=8,zero=3,mbs=1"
    kept, all_kept = (
        estimated(w, layout).evaluation.stages[0][0].memory.activations for w in (where, stored)
    )

    block = fused.blocks[fused.layers[0]]
    scores = 2.0 * fused.num_layers * block.dims["heads"] * 2048**2
    statistics = 4.0 * fused.num_layers * block.dims["heads"] * 2048
    assert all_kept - kept == pytest.approx(scores - statistics)


def with_stored_scores(graph: ModelGraph) -> ModelGraph:
    """The model with attention kernels that keep their scores."""

    def changed(op: Op) -> Op:
        return replace(op, attributes={**op.attributes, "fused": False})

    def stored(block: Block) -> Block:
        ops = tuple(changed(op) if op.kind == "attention" else op for op in block.ops)
        return replace(block, ops=ops)

    return replace(graph, blocks={name: stored(block) for name, block in graph.blocks.items()})


@report("94")
def test_expert_weights_of_a_rank() -> None:
    graph = named("mimo-v2-flash")
    where = asked(graph, chips(8, "nvidia-h100-sxm-80g", scale_up="nvlink4"))
    found = estimated(where, "dp=8,ep=8,recompute=full")
    experts = sum(
        op_parameters(op, graph.blocks[name])
        for name in graph.layers
        for op in graph.blocks[name].ops
        if op.kind == "experts"
    )

    assert 2 * experts / 8 == pytest.approx(75.7e9, rel=0.005)
    assert found.evaluation.stages[0][0].memory.weights > 75.7e9
    assert not found.fits


@report("97")
def test_stage_that_does_not_fit_is_named() -> None:
    card: Any = {"overrides": {"chip": {"memory": "27.06 GB"}}, "memory_margin": 1.0}
    where = asked(named("llama2-13b"), chips(4, **card))
    found = estimated(where, "pp=4,layers=25/5/5/5,recompute=full")
    short = [stage.memory.missing > 0 for stage in found.evaluation.stages[0]]
    stages: Any = found.document()["stages"]

    assert short[0]
    assert found.missing_bytes == max(stage["memory"]["missing"] for stage in stages)
    assert stages[0]["memory"]["capacity"] == pytest.approx(27.06e9)
    assert stages[0]["memory"]["missing"] == found.missing_bytes


TIED = {"tie_word_embeddings": True, "vocab_size": 32_768}


@report("98")
def test_copy_of_a_tied_weight_is_held_and_not_counted() -> None:
    graph = dense(**TIED)
    where = asked(graph, 2)
    layout = load_layout(where, "pp=2")
    table = 32_768 * 1024
    held = sum(
        block_parameters(graph.blocks[instance.block])
        for stage in layout.pipelines[0].stages
        for instance in stage_instances(graph, stage)
    )
    weights = [s.memory.weights for s in evaluate(where, layout).stages[0]]

    assert parameter_counts(graph).total == held - table
    assert sum(weights) == 2 * held


@report("73")
def test_multi_token_depth_keeps_one_sharded_copy_of_the_embedding() -> None:
    """Beside the head it adds its block and one embedding table; their state is sharded over dp."""
    graph = named("deepseek-v3")
    bare = replace(graph, mtp=(), ties=())
    job = {"sequence_length": 4096, "global_batch_size": 512}
    layers, degrees = "Et*3|(t*4|)*14tt", "pp=16,dp=32,ep=32,mbs=1"
    ends = [
        estimated(asked(g, 512, **job), f"{degrees},layout={layers}{end}").evaluation.stages[0][-1]
        for g, end in ((graph, "mL"), (bare, "L"))
    ]
    block = graph.blocks["mtp_0"]
    head = 129_280 * 7168
    experts = sum(op_parameters(op, block) for op in block.ops if op.kind == "experts")
    added = block_parameters(block) - head - experts * (1 - 1 / 32)

    with_depth, without = (end.memory for end in ends)
    assert with_depth.weights - without.weights == pytest.approx(2 * added)
    sharded = (added - experts / 32) / 32 + experts / 32
    assert with_depth.optimizer - without.optimizer == pytest.approx(12 * sharded)


@report("99")
def test_tied_copies_sum_their_gradients() -> None:
    graph = dense(**TIED)
    where = asked(graph, 4)
    layout = load_layout(where, "pp=2,dp=2")
    groups = [g for g in gradient_groups(graph, layout, where.job) if g.kind == "embedding"]
    untied = gradient_groups(dense(), layout, where.job)

    assert [len(group.ranks) for group in groups] == [4]
    assert not any(group.kind == "embedding" for group in untied)


@report("101")
def test_last_stage_holds_the_tied_table() -> None:
    graph = dense(tie_word_embeddings=True, vocab_size=151_936, hidden_size=2560)
    where = asked(graph, 2)
    layout = load_layout(where, "pp=2")
    last = [h for h in holdings(graph, layout, where.job) if h.stage == 1 and h.rank == 1]
    tables = [h for h in last if h.sizes == (151_936, 2560)]

    assert [holding.box for holding in tables] == [((0, 151_936), (0, 2560))]
    first, end = evaluate(where, layout).stages[0]
    assert end.memory.weights - first.memory.weights == 2 * 2560


@report("102")
def test_both_ends_on_one_stage_share_the_weight() -> None:
    graph = dense(**TIED)
    where = asked(graph, 2)
    layout = load_layout(where, "dp=2")
    groups = gradient_groups(graph, layout, where.job)
    (stage,) = evaluate(where, layout).stages[0]

    assert not any(group.kind == "embedding" for group in groups)
    assert stage.memory.weights == 2 * parameter_counts(graph).total
