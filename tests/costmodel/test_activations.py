"""Kept bytes as older software runs a layer: Korthikanti et al. 2022 (arXiv 2205.05198)."""

from dataclasses import replace

import pytest

from costmodel.calibration.convention import MEGATRON_2021, NANOTRON
from costmodel.calibration.models import as_run
from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.layout.values import StageOption
from costmodel.model.graph import Block
from costmodel.model.ops.registry import work_of
from costmodel.model.read import load_model
from costmodel.stage.activations import kept_bytes
from costmodel.stage.block_costs import block_costs, setting_of
from costmodel.stage.costs import stage_table
from costmodel.stage.local import local_shares
from tests.costmodel.cases import problem

GPT = {
    "model_type": "gpt2",
    "n_embd": 1024,
    "n_layer": 2,
    "n_head": 16,
    "vocab_size": 51200,
    "n_positions": 2048,
}
H, A, S = 1024, 16, 2048


def gpt_layer(*, recompute_attention: bool = False) -> Block:
    graph = load_model({"config": GPT})
    graph = as_run(graph, MEGATRON_2021, recompute_attention=recompute_attention)
    return graph.blocks[graph.layers[0]]


def bytes_per_token(block: Block, *, tp: int = 1, sequence_parallel: bool = False) -> float:
    option = StageOption(pool="p", tp=tp, sequence_parallel=sequence_parallel)
    return float(kept_bytes(block, local_shares([option], problem().job, S))[0]) / S


def test_stored_scores_and_dropout() -> None:
    """Equation 1: ``s b h (34 + 5 a s / h)``."""
    assert bytes_per_token(gpt_layer()) == pytest.approx(34 * H + 5 * A * S)


@pytest.mark.parametrize("t", [2, 8])
def test_tensor_parallel(t: int) -> None:
    """Equation 2: ``s b h (10 + 24 / t + 5 a s / (h t))``; with sequence parallelism all / t."""
    stream = bytes_per_token(gpt_layer(), tp=t)
    split = bytes_per_token(gpt_layer(), tp=t, sequence_parallel=True)

    assert stream == pytest.approx(10 * H + (24 * H + 5 * A * S) / t)
    assert split == pytest.approx((34 * H + 5 * A * S) / t)


def test_recomputed_attention_keeps_no_scores() -> None:
    """Equation 6: ``34 s b h / t``."""
    block = gpt_layer(recompute_attention=True)

    assert bytes_per_token(block, tp=8, sequence_parallel=True) == pytest.approx(34 * H / 8)


def test_recomputed_attention_costs_its_forward_once_more() -> None:
    case = problem()
    device = replace(DEFAULT_EFFICIENCY, host_op_s=0.0)
    setting = setting_of(case.cluster, case.job, (StageOption(pool="p", tp=8),), device)
    kept, again = (
        block_costs(gpt_layer(recompute_attention=again), S, setting).terms
        for again in (False, True)
    )
    extra = float(again.backward_s[0] - kept.backward_s[0])

    assert float(again.forward_s[0]) == float(kept.forward_s[0])
    assert 0.05 * float(kept.forward_s[0]) < extra < float(kept.forward_s[0])


def test_an_eager_gate_keeps_its_inner_result() -> None:
    """Two operations instead of one kernel: 2 f bytes a token more."""
    plain = problem().model
    eager = as_run(plain, NANOTRON, recompute_attention=False)
    name = plain.layers[0]
    more = bytes_per_token(eager.blocks[name]) - bytes_per_token(plain.blocks[name])

    assert more == pytest.approx(2 * plain.blocks[name].dims["ffn"])


def test_a_bias_is_added_in_passing() -> None:
    """No traffic of its own forward; backward it reads 2 bytes of each gradient once."""
    block = gpt_layer()
    bias = next(op for op in block.ops if op.kind == "bias")
    local = local_shares([StageOption(pool="p")], problem().job, S)
    work = work_of(bias, block, local)

    assert work.memory_bytes is not None
    assert work.backward_bytes is not None
    assert float(work.memory_bytes[0]) == 0.0
    assert float(work.backward_bytes[0]) == 2 * S * block.elements(block.tensors[bias.name])


def test_dummy_gradients_of_a_layer_stand_beside_those_of_the_head() -> None:
    """One 2-byte buffer a weight shape with fused accumulation, else one weight at a time."""
    case, options = problem(), [StageOption(pool="p", tp=8)]
    fused, apart = (
        stage_table(
            case.model,
            case.cluster,
            case.job,
            options,
            replace(DEFAULT_EFFICIENCY, fused_gradients=fused_gradients),
        )
        for fused_gradients in (True, False)
    )
    layer = float(fused.layers.dense_parameters[0, 1])
    head = float(fused.head.dense_parameters[0])
    largest = head - case.model.blocks["head"].dims["hidden"]
    more = float(fused.head_transient_bytes[0] - apart.head_transient_bytes[0])

    assert more == pytest.approx(2.0 * (layer + head - largest))
