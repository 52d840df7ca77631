"""The traffic forecast against counts by hand."""

from costmodel.layout.values import Layout, StageOption
from costmodel.traffic import Widths, forecast, widths
from tests.runner.tiny import HIDDEN, LLAMA, MOE, SEQUENCE, VOCAB, job, model, option, pipeline

ONE = Widths(activation=1, gradient=1, weight=1, loss=1)
STREAM = SEQUENCE * HIDDEN
"""Elements of the residual stream of one sequence."""


def one_stage(chosen: StageOption, *, microbatches: int = 1) -> dict[str, int]:
    layout = Layout(pipelines=(pipeline((1, chosen), microbatches=microbatches),))
    total: dict[str, int] = {}
    for (kind, _), size in forecast(model([LLAMA]), layout, job(layout), element=ONE).items():
        total[kind] = total.get(kind, 0) + size
    return total


def test_tensor_parallel_layer() -> None:
    parallel = one_stage(option(tp=2))["tp"]
    plain = one_stage(option(tp=2, sequence_parallel=False))["tp"]

    layer, embedding, head = 2 + 2 + 4 + 2, 1 + 1, 1 + 2
    assert parallel == 2 * ((layer + embedding + head) * STREAM + 3 * SEQUENCE)
    assert plain == 2 * ((2 + 2 + 1 + 1) * STREAM + 3 * SEQUENCE)


def test_full_recomputation_repeats_the_layer_and_not_the_ends() -> None:
    extra = one_stage(option(tp=2, recompute="full"))["tp"] - one_stage(option(tp=2))["tp"]

    assert extra == 2 * 4 * STREAM


def test_context_parallel_attention() -> None:
    keys_and_values = SEQUENCE * 2 * (2 * 4)

    assert one_stage(option(cp=2))["cp"] == 2 * 3 * keys_and_values
    assert one_stage(option(cp=2, recompute="full"))["cp"] == 2 * 4 * keys_and_values
    assert one_stage(option(cp=2, recompute="selective"))["cp"] == 2 * 3 * keys_and_values


def test_routed_tokens() -> None:
    layout = Layout(pipelines=(pipeline((1, option(tp=2, replicas=2, ep=2, etp=2))),))
    found = forecast(model([MOE]), layout, job(layout), element=ONE)

    routed = 2 * STREAM * 2  # sequences x stream x top_k: what all four ranks send
    assert found["ep", (0, 1, 2, 3)] == 2 * 4 * routed
    assert found["etp", (0, 1, 2, 3)] == 2 * 4 * 2 * routed


def test_boundaries_carry_the_stream_both_ways() -> None:
    plain = option(tp=2, sequence_parallel=False)
    layout = Layout(pipelines=(pipeline((1, option(tp=2)), (1, plain), microbatches=3),))
    found = forecast(model([LLAMA] * 2), layout, job(layout), element=ONE)

    assert found["pp", (0, 1, 2, 3)] == 3 * (STREAM + 2 * STREAM)


def test_gradients_and_weights_by_zero_stage() -> None:
    parameters = 2 * VOCAB * HIDDEN + HIDDEN + 2 * HIDDEN
    parameters += 2 * 16 * HIDDEN + 2 * 8 * HIDDEN + 3 * 24 * HIDDEN
    assert parameters % 2 == 0

    found = [one_stage(option(replicas=2, zero=z), microbatches=3)["dp"] for z in range(4)]

    assert found == [2 * n * parameters for n in (1, 2, 3 + 1, 3 + 2 * 3)]


def test_bytes_are_those_of_the_job() -> None:
    layout = Layout(pipelines=(pipeline((1, option(replicas=2, zero=1))),))
    found = forecast(model([LLAMA]), layout, job(layout))
    elements = forecast(model([LLAMA]), layout, job(layout), element=ONE)

    assert widths(job(layout)) == Widths(activation=2, gradient=4, weight=2, loss=4)
    assert found["dp", (0, 1)] * 2 == elements["dp", (0, 1)] * (4 + 2)


def test_a_single_rank_sends_nothing() -> None:
    assert one_stage(option()) == {}
