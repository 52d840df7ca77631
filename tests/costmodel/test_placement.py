"""Collectives derived from the graph against the published scheme for tensor parallelism."""

from collections import Counter

import pytest

from costmodel.model.placement import (
    Collective,
    Conversion,
    Placement,
    collectives,
    conversions,
    gradient_is_partial,
    is_sharded,
)
from costmodel.model.read import load_model


def steps(model: str, layer: int, *, sequence_parallel: bool) -> tuple[Counter[str], Counter[str]]:
    graph = load_model(model)
    forward: Counter[str] = Counter()
    backward: Counter[str] = Counter()
    for conversion in conversions(graph.blocks[graph.layers[layer]]):
        ahead, back = collectives(conversion, sequence_parallel=sequence_parallel)
        forward.update(step.value for step in ahead)
        backward.update(step.value for step in back)
    return forward, backward


def test_a_transformer_layer_with_sequence_parallelism() -> None:
    """Two gathers and two scatters forward (Korthikanti et al., figure 5); the backward gathers
    the gradients of both outputs, scatters both inputs' and gathers both inputs again."""
    forward, backward = steps("llama3-8b", 0, sequence_parallel=True)
    assert forward == {"all_gather": 2, "reduce_scatter": 2}
    assert backward == {"all_gather": 4, "reduce_scatter": 2}


def test_a_transformer_layer_without_sequence_parallelism() -> None:
    """Two all-reduces each way (Shoeybi et al., arXiv 1909.08053, figure 4)."""
    forward, backward = steps("llama3-8b", 0, sequence_parallel=False)
    assert forward == {"all_reduce": 2}
    assert backward == {"all_reduce": 2}


def test_parallel_attention_and_mlp_share_their_gather() -> None:
    forward, _ = steps("gpt-j-6b", 0, sequence_parallel=True)
    assert forward["all_gather"] == 1


def test_every_tensor_is_converted_once_however_many_ops_read_it() -> None:
    graph = load_model("llama3-8b")
    found = conversions(graph.blocks[graph.layers[0]])
    assert len({(c.tensor, c.target) for c in found}) == len(found)


def test_norms_are_whole_and_their_gradients_partial_only_with_sequence_parallelism() -> None:
    block = load_model("llama3-8b").blocks[load_model("llama3-8b").layers[0]]
    norm = next(op for op in block.ops if op.kind == "norm")
    assert not is_sharded(norm, norm.weights[0])
    assert gradient_is_partial(norm, norm.weights[0], sequence_parallel=True)
    assert not gradient_is_partial(norm, norm.weights[0], sequence_parallel=False)


def test_a_change_that_no_valid_graph_asks_for_is_refused() -> None:
    odd = Conversion(
        tensor="t", source=Placement.SPLIT, target=Placement.STREAM, elements_per_token=1
    )
    with pytest.raises(KeyError):
        collectives(odd, sequence_parallel=True)


@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_both_modes_move_the_same_volume_forward(*, sequence_parallel: bool) -> None:
    """An all-reduce is a reduce-scatter and an all-gather, so counted in halves both are equal."""
    halves = {Collective.ALL_REDUCE.value: 2}
    forward, _ = steps("llama3-8b", 0, sequence_parallel=sequence_parallel)
    assert sum(n * halves.get(step, 1) for step, n in forward.items()) == 4
