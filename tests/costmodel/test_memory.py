"""Bytes against the published formulas."""

import numpy as np
import pytest

from costmodel.job import Job
from costmodel.layout.values import StageOption
from costmodel.memory import Shards, static_bytes
from costmodel.stage.activations import kept_bytes
from costmodel.stage.costs import stage_table
from costmodel.stage.local import local_shares
from costmodel.step import evaluate
from tests.costmodel.cases import even_layout, problem


def per_parameter(zero: int, shards: float, job: Job) -> float:
    number = [np.asarray(x, dtype=np.float64) for x in (1.0, 0.0, shards, 1.0, zero)]
    dense, expert, over, one, stage = number
    static = static_bytes(dense, expert, Shards(dense=over, expert=one), stage, job)
    return float(static.weights + static.gradients + static.optimizer)


@pytest.mark.parametrize(
    ("zero", "expected"),
    [(0, 18.0), (1, 6 + 12 / 8), (2, 2 + 4 / 8 + 12 / 8), (3, 18 / 8)],
)
def test_bytes_per_parameter(zero: int, expected: float) -> None:
    """18 undistributed, 6 + 12/d with a distributed optimizer (Megatron-LM's estimator)."""
    job = Job(global_batch_size=8, sequence_length=8)
    assert per_parameter(zero, 8.0, job) == pytest.approx(expected)


def test_fp32_training_keeps_no_second_copy() -> None:
    job = Job(global_batch_size=8, sequence_length=8, precision="fp32")
    assert per_parameter(0, 1.0, job) == 16.0


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_activations_of_a_dense_layer(tp: int) -> None:
    """``[8h + 2d(a + 2g) + 2da + 6f]/t + 4a/t`` bytes a token (``costmodel.stage.activations``);
    rotated q and k take the place of q and k."""
    case = problem()
    graph = case.model
    block = graph.blocks[graph.layers[0]]
    h, a, g, d, f = (block.dims[n] for n in ("hidden", "heads", "kv_heads", "qk_dim", "ffn"))
    local = local_shares([StageOption(pool="p", tp=tp)], case.job, 4096)
    expected = 4096 * (8 * h + 2 * d * (a + 2 * g) + 2 * d * a + 6 * f + 4 * a) / tp
    assert kept_bytes(block, local)[0] == pytest.approx(expected)


def test_without_sequence_parallelism_the_stream_is_whole_on_every_chip() -> None:
    case = problem()
    block = case.model.blocks[case.model.layers[0]]
    options = [StageOption(pool="p", tp=8, sequence_parallel=s) for s in (True, False)]
    split, whole = kept_bytes(block, local_shares(options, case.job, 4096))
    assert whole - split == pytest.approx(4096 * 8 * block.dims["hidden"] * (1 - 1 / 8))


def test_recompute_modes_keep_less_and_less() -> None:
    case = problem()
    kept = [
        evaluate(case, even_layout(StageOption(pool="p", tp=2, recompute=mode), 4, 32))
        .stages[0][0]
        .memory.activations
        for mode in ("none", "selective", "full")
    ]
    assert kept[0] > kept[1] > kept[2] > 0


def test_full_recompute_keeps_the_input_of_every_layer() -> None:
    """``2 s b h`` bytes a layer and micro-batch, over t with sequence parallelism."""
    case = problem()
    option = StageOption(pool="p", tp=2, recompute="full")
    first = evaluate(case, even_layout(option, 4, 32)).stages[0][0]
    assert first.in_flight == 4
    layers = 4 * 8 * 2 * 4096 * 4096 / 2
    assert first.memory.activations == pytest.approx(layers, rel=0.02)


def test_earlier_stages_keep_more_micro_batches() -> None:
    stages = evaluate(problem(), even_layout(StageOption(pool="p", tp=2), 4, 32)).stages[0]
    assert [s.in_flight for s in stages] == [4, 3, 2, 1]
    kept = [s.memory.activations for s in stages[:3]]
    assert kept == sorted(kept, reverse=True)


def test_optimizer_shards_over_every_pipeline_that_holds_the_layer() -> None:
    case = problem()
    option = StageOption(pool="p", tp=2)
    one = evaluate(case, even_layout(option, 4, 32)).stages[0][1].memory
    four = evaluate(case, even_layout(option, 4, 8, count=4)).stages[0][1].memory
    assert four.optimizer == pytest.approx(one.optimizer / 4)
    assert four.weights == one.weights


@pytest.mark.parametrize(("zero", "expected"), [(1, 0.0), (2, 2.0), (3, 6.0)])
def test_a_sharded_block_stands_whole_while_it_runs(zero: int, expected: float) -> None:
    """Its 16-bit gradients with ZeRO 2, and its weights and the next block's with ZeRO 3."""
    one = problem()
    plain, sharded = (
        StageOption(
            pool=one.cluster.pools[0].name,
            tp=2,
            cp=1,
            ep=1,
            etp=1,
            replicas=4,
            micro_batch_size=1,
            sequence_parallel=True,
            zero=stage,
            recompute="none",
        )
        for stage in (0, zero)
    )
    table = stage_table(one.model, one.cluster, one.job, [plain, sharded])
    layer = table.layers.dense_parameters[0, 1] + table.layers.expert_parameters[0, 1]

    more = table.transient_bytes[1, 0] - table.transient_bytes[0, 0]
    assert more == pytest.approx(expected * layer)
