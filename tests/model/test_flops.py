"""Model FLOPs against closed forms written from the configs, and against published figures."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from costmodel.model.flops import bookkeeping_flops_per_token, flops_per_token, keys_seen
from costmodel.model.graph import Attribute, Op
from costmodel.model.parameters import parameter_counts
from costmodel.model.read import load_model

S = 4096


def attention(**attributes: Attribute) -> Op:
    return Op(
        name="attention",
        kind="attention",
        inputs=(),
        outputs=(),
        attributes=MappingProxyType(attributes),
    )


def test_llama3_70b() -> None:
    """3 x (2 h (2 a d + 2 g d + 3 f) + 4 s/2 a d) a layer, and 3 x 2 h V for the head."""
    h, d, a, g, f, v, layers = 8192, 128, 64, 8, 28672, 128256, 80
    layer = 2 * h * (2 * a * d + 2 * g * d + 3 * f) + 4 * (S / 2) * a * d

    assert flops_per_token(load_model("llama3-70b"), S) == 3 * (layers * layer + 2 * h * v)


def test_deepseek_v3_attention_is_three_times_query_and_value_width() -> None:
    """verl#4959: 3 (q + v) s for causal latent attention, forward and backward."""
    graph = load_model("deepseek-v3")
    once, twice = (flops_per_token(graph, s, mtp=False) for s in (S, 2 * S))

    assert twice - once == pytest.approx(61 * 3 * 128 * (192 + 128) * S, rel=1e-12)


def test_deepseek_v3_linear_part_is_six_times_active_parameters() -> None:
    """All but norms (and the input embedding) is products."""
    graph = load_model("deepseek-v3")
    counts = parameter_counts(graph)
    linear = flops_per_token(graph, 1, mtp=False) - 61 * 3 * 128 * 320

    assert linear == pytest.approx(6 * (counts.active - counts.embedding), rel=1e-4)


def test_deepseek_v4_flash_as_torchtitan_books_it() -> None:
    """https://github.com/pytorch/torchtitan/pull/4441, one prediction layer, 4,096 tokens."""
    assert bookkeeping_flops_per_token(load_model("deepseek-v4-flash"), S) == 92_762_352_876


def test_bookkeeping_of_a_dense_model() -> None:
    """6 N without the input embedding, plus 12 L h s (PaLM, arXiv 2204.02311, appendix B)."""
    graph = load_model("llama3-70b")
    counts = parameter_counts(graph)

    expected = 6 * (counts.total - counts.embedding) + 12 * 80 * 8192 * S
    assert bookkeeping_flops_per_token(graph, S) == expected


def test_window_limits_the_keys() -> None:
    """The mean of min(position, w) over s positions tends to w (1 - w / 2s)."""
    exact = sum(min(i + 1, 128) for i in range(S)) / S

    assert keys_seen(attention(causal=True, window=128), S) == pytest.approx(exact, rel=5e-3)
    assert keys_seen(attention(causal=True, window=0), S) == S / 2
    assert keys_seen(attention(causal=True, window=2 * S), S) == S / 2
    assert keys_seen(attention(causal=False), S) == S


def test_chunks_and_compressed_keys() -> None:
    assert keys_seen(attention(causal=True, chunk=1024), S) == 512
    assert keys_seen(attention(causal=True, window=0, compress=128), S) == S / 2 + S / 256
    assert keys_seen(attention(causal=True, top_keys=512), S) == 512 * (1 - 512 / (2 * S))


def test_windows_are_cheaper_than_full_attention() -> None:
    graph = load_model("gemma3-27b-text")
    full = replace(graph, layers=("full",) * graph.num_layers)

    assert flops_per_token(graph, 32_768) < 0.9 * flops_per_token(full, 32_768)


def test_only_chosen_experts_count() -> None:
    graph = load_model("mixtral-8x7b")
    h, f, experts = 4096, 14336, 8
    layer = 2 * h * (2 * 4096 + 2 * 1024 + 3 * 2 * f + experts) + 4 * (S / 2) * 4096

    assert flops_per_token(graph, S) == 3 * (32 * layer + 2 * h * 32000)


def test_prediction_blocks_count_their_layer_and_the_head_again() -> None:
    graph = load_model("deepseek-v3")
    extra = flops_per_token(graph, S) - flops_per_token(graph, S, mtp=False)
    moe = flops_per_token(replace(graph, layers=("moe",), mtp=()), S)
    head = flops_per_token(replace(graph, layers=(), mtp=()), S)

    assert extra == pytest.approx(moe + 3 * 2 * 2 * 7168 * 7168, rel=1e-12)
    assert head == 3 * 2 * 7168 * 129280


def test_cross_attention_reads_the_encoder() -> None:
    """T5 by hand: relu MLP, 6 + 6 layers, keys and values of the decoder from encoder tokens."""
    h, inner, f, v, s = 512, 512, 2048, 32128, 512
    projections, mlp = 2 * 4 * h * inner, 2 * 2 * h * f
    encoder = projections + mlp + 4 * s * inner
    decoder = 2 * projections + mlp + 4 * (s / 2) * inner + 4 * s * inner

    assert flops_per_token(load_model("t5-small"), s) == 3 * (6 * encoder + 6 * decoder + 2 * h * v)


def test_whisper_encoder_is_shared_by_the_text_tokens() -> None:
    graph = load_model("whisper-tiny")

    assert flops_per_token(graph, 100) > 2.9 * flops_per_token(graph, 448)
