"""What cannot be executed is refused by name."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from costmodel.layout.values import Layout, Schedule
from costmodel.model.graph import ModelGraph, Op
from runner.functions import FUNCTIONS
from runner.ops.registry import kinds
from runner.support import EXECUTED_FUNCTIONS, EXECUTED_OPS, refusals
from tests.runner.tiny import LLAMA, model, option, pipeline

ZERO_BUBBLE = Schedule(kind="zero-bubble")
LAYOUT = Layout(pipelines=(pipeline((1, option(tp=2))),))


def with_op(**changes: object) -> ModelGraph:
    """A model whose activation op is another one."""
    graph = model([LLAMA])
    block = graph.blocks["layer0"]
    ops: list[Op] = [replace(op, **changes) if op.name == "act" else op for op in block.ops]
    blocks = dict(graph.blocks) | {"layer0": replace(block, ops=tuple(ops))}
    return replace(graph, blocks=MappingProxyType(blocks))


def test_names_are_those_of_the_implementations() -> None:
    assert kinds() == EXECUTED_OPS
    assert frozenset(FUNCTIONS) == EXECUTED_FUNCTIONS


def test_a_usual_model_is_executed() -> None:
    assert refusals(model([LLAMA]), LAYOUT) == ()


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (with_op(kind="scan"), "op kind scan has no implementation"),
        (with_op(attributes={"function": "arctan"}), "function arctan is not executed"),
        (with_op(kind="attention", attributes={"top_keys": 4}), "attention with top_keys"),
        (replace(model([LLAMA]), streams={"main": None, "encoder": 8}), "an encoder and a decoder"),
    ],
)
def test_models_that_are_not_executed(graph: ModelGraph, words: str) -> None:
    assert any(words in str(violation) for violation in refusals(graph, LAYOUT))


def test_schedules_that_are_not_executed() -> None:
    unknown = replace(LAYOUT, schedule=Schedule(kind="zigzag"))
    sharded = Layout(
        pipelines=(pipeline((1, option(zero=2))),),
        schedule=Schedule(kind="interleaved", virtual_stages=2),
    )

    assert "'zigzag'" in str(refusals(model([LLAMA]), unknown)[0])
    assert "several chunks" in str(refusals(model([LLAMA]), sharded)[0])


def test_sharded_weights_need_stages_in_step() -> None:
    sharded = option(zero=3)
    alike = Layout(pipelines=(pipeline((1, sharded), (1, sharded), count=2),))
    unlike = Layout(
        pipelines=(
            pipeline((1, sharded), (1, sharded), microbatches=2),
            pipeline((1, sharded), (1, sharded), microbatches=3),
        )
    )

    assert refusals(model([LLAMA] * 2), alike) == ()
    assert "ZeRO 3" in str(refusals(model([LLAMA] * 2), unlike)[0])


def test_sharded_weights_put_off_need_stages_at_the_same_place() -> None:
    """The last stages of either pipeline hold layer 2, but put off unlike numbers of gradients."""
    sharded = option(zero=3)
    plain = Layout(
        pipelines=(
            pipeline((2, sharded), (1, sharded), microbatches=3),
            pipeline((1, sharded), (1, sharded), (1, sharded), microbatches=3),
        )
    )
    graph = model([LLAMA] * 3)

    where = {str(v.value) for v in refusals(graph, replace(plain, schedule=Schedule(kind="1f1b")))}
    apart = {str(v.value) for v in refusals(graph, replace(plain, schedule=ZERO_BUBBLE))}

    assert "layers 2 to 3" not in where
    assert "layers 2 to 3" in apart
