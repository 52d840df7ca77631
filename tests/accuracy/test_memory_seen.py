"""What stacks print of their memory: whose, of what, and what lives beside the model."""

from dataclasses import replace
from typing import Any

import pytest

from costmodel.calibration.case import Case, case_of
from costmodel.calibration.memory_seen import MemoryConstants, Seen, figure, seen
from costmodel.calibration.prepare import prepare

MIB = 2**20
ROW: dict[str, Any] = {
    "id": "x",
    "source": "a test",
    "url": "https://example.org",
    "quality": "A",
    "model": {
        "name": "gpt:small_te_",
        "layers": 24,
        "hidden": 2048,
        "heads": 16,
        "ffn_hidden": 8192,
        "gated_mlp": True,
        "vocab": 50304,
        "seq": 2048,
        "toy": True,
    },
    "hardware": {"chip": "nvidia-h100-sxm-80g", "n_chips": 8, "chips_per_node": 8},
    "parallel": {"tp": 1, "pp": 1, "mbs": 1, "gbs": 64, "recompute": "none"},
    "measured": {"peak_memory_bytes": 5e10},
}


def case(stack: str, model: dict[str, Any] | None = None, **parallel: Any) -> Case:
    row = {**ROW, "stack": stack, "parallel": {**ROW["parallel"], **parallel}}
    return case_of({**row, "model": {**ROW["model"], **(model or {})}})


def shown(one: Case, **how: Any) -> Seen:
    """Of the case, with the stack's convention changed."""
    prepared = prepare(one)
    prepared = replace(prepared, how=replace(prepared.how, **how))
    return seen(prepared, prepared.evaluations(prepared.problem.efficiency))


@pytest.mark.parametrize("virtual", [1, 2, 6])
def test_what_a_stage_received_last_outlives_the_step(virtual: int) -> None:
    """An input and an output's gradient for each chunk: 2 v b s h elements of two bytes."""
    one = case("megatron-ci", pp=4, vp=virtual)
    tensors = shown(one).static - shown(one, keeps_received=False).static

    assert tensors == pytest.approx(2 * virtual * 2048 * 2048 * 2)


def test_one_stage_receives_nothing() -> None:
    assert shown(case("megatron-ci")).static == shown(case("megatron-ci"), keeps_received=0).static


@pytest.mark.parametrize(("tp", "copies"), [(1, 1), (8, 0)])
def test_buckets_are_for_replicated_gradients(tp: int, copies: int) -> None:
    one = case("nanotron", tp=tp)
    parameters = prepared_weights(one) / 2

    added = shown(one).needed - shown(one, bucket_bytes=0.0).needed
    assert added == pytest.approx(copies * 2.0 * parameters)


def prepared_weights(one: Case) -> float:
    prepared = prepare(one)
    [(evaluation, _)] = prepared.evaluations(prepared.problem.efficiency)
    return evaluation.stages[0][0].memory.weights


def test_gradients_of_a_backward_count_where_they_outgrow_its_activations() -> None:
    """At the end of a backward the gradients stand where the activations stood."""
    short, long = (case("nanotron", {"seq": seq}) for seq in (128, 8192))

    assert shown(short).needed > shown(short, late_gradient_bytes=0.0).needed
    assert shown(long).needed == shown(long, late_gradient_bytes=0.0).needed


@pytest.mark.parametrize(("name", "streams"), [("moe_te_", 0), ("moe_te_groupedGEMM", 4)])
def test_grouped_products_have_a_workspace_a_stream(name: str, streams: int) -> None:
    experts = {"name": name, "experts": 8, "topk": 2}
    how = prepare(case("megatron-ci", experts)).how

    assert how.workspace_bytes("nvidia-h100-sxm-80g") == (64 + 32 * (1 + streams)) * MIB
    assert how.workspace_bytes("nvidia-a100-sxm-80g") == (64 + 4 * (1 + streams)) * MIB


def test_large_tests_have_the_vocabulary_of_their_tokenizer() -> None:
    """131,073 ids, padded to 128 tp, in two embeddings; small ones have GPT-2's in one."""
    large, small = (
        prepare(case("megatron-ci", {"vocab": None, "toy": toy})).how for toy in (False, True)
    )

    assert (large.vocab, large.tied) == (131073, False)
    assert (small.vocab, small.tied) == (50257, True)


def test_a_printed_figure_stays_between_the_need_and_the_room() -> None:
    """``f L + g W + c`` and what is held: at most the room, never less than the need beyond it."""
    constants = MemoryConstants(lasting=1.2, working=1.5, beside_bytes=2.0)

    def of(lasting: float, held: float = 0.0) -> float:
        one = Seen(static=0.0, lasting=lasting, working=10.0, held=held, room=80.0)
        return figure(one, constants)

    assert of(10.0) == pytest.approx(29.0)
    assert of(10.0, held=5.0) == pytest.approx(34.0)
    assert of(60.0) == of(10.0, held=500.0) == 80.0
    assert of(75.0) == 85.0


def test_selective_recomputation_keeps_its_own_share_of_the_activations() -> None:
    """torchtitan's saves every second product: neither 1 - 0.4 nor all of the layers."""
    kept, mixed = (
        shown(case("torchtitan", recompute="selective"), layer_kept=share) for share in (0.35, 0.6)
    )
    whole = shown(case("torchtitan", recompute="none"))
    full = shown(case("torchtitan", recompute="full"))

    assert mixed.working == pytest.approx(0.6 * whole.working + 0.4 * full.working)
    assert kept.working == pytest.approx(0.35 * whole.working + 0.65 * full.working)


def test_a_fully_sharded_pipeline_keeps_what_it_gathered() -> None:
    """2 bytes of weights and 4 of gradients a parameter, whole, between the micro-batches."""
    one = case("torchtitan", pp=2, fsdp=True)
    parameters = 4 * prepared_weights(one) / 2

    more = shown(one).needed - shown(one, keeps_gathered=False).needed
    assert more == pytest.approx(6 * parameters * (1 - 1 / 4))
