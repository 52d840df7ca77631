"""Weights that several blocks share, and parts that no axis splits."""

from dataclasses import replace

import pytest

from costmodel.layout.values import Layout, StageOption
from costmodel.model.parameters import parameter_counts
from costmodel.step import evaluate
from tests.costmodel.cases import pipeline, problem

EMBEDDING = 130048 * 7168  # the vocabulary of 129,280 padded to a multiple of 128 x 8
OPTION = StageOption(pool="p", tp=8, replicas=4, ep=32)


def weights(*, head_on: int, mtp_on: int, stages: int = 3) -> list[float]:
    """Weight bytes of each DeepSeek-V3 stage with the head and the multi-token depth placed."""
    case = problem("deepseek-v3")
    cuts = [0, 20, 40, 61][: stages + 1] if stages == 3 else [0, 61]
    line = pipeline([OPTION] * stages, cuts, 8)
    placed = tuple(
        replace(s, head=i == head_on, mtp=int(i == mtp_on)) for i, s in enumerate(line.stages)
    )
    layout = Layout(pipelines=(replace(line, stages=placed),))
    return [s.memory.weights for s in evaluate(case, layout).stages[0]]


def test_the_multi_token_depth_beside_the_head_shares_its_weight() -> None:
    together = weights(head_on=2, mtp_on=2)
    apart = weights(head_on=2, mtp_on=1)
    assert sum(apart) - sum(together) == pytest.approx(2 * EMBEDDING / 8, rel=1e-3)


def test_one_stage_keeps_every_shared_weight_once() -> None:
    one = weights(head_on=0, mtp_on=0, stages=1)
    three = weights(head_on=2, mtp_on=2)
    assert sum(three) - sum(one) == pytest.approx(2 * EMBEDDING / 8, rel=1e-3)


def test_every_weight_has_optimizer_state_wherever_it_is() -> None:
    case = problem("deepseek-v3")
    line = pipeline([replace(OPTION, zero=0)] * 3, [0, 20, 40, 61], 8)
    placed = (line.stages[0], replace(line.stages[1], mtp=1), line.stages[2])
    layout = Layout(pipelines=(replace(line, stages=placed),))
    for stage in evaluate(case, layout).stages[0]:
        assert stage.memory.optimizer == pytest.approx(6 * stage.memory.weights)


def test_a_vision_tower_is_whole_on_every_chip_of_the_first_stage() -> None:
    case = problem("qwen3-vl-8b")
    tower = parameter_counts(case.model).component
    bare = replace(case, model=replace(case.model, components=()))
    line = pipeline([StageOption(pool="p", tp=4)] * 2, [0, 18, 36], 8)
    layout = Layout(pipelines=(line,))
    first, without = (evaluate(c, layout).stages[0][0].memory.weights for c in (case, bare))
    assert first - without == pytest.approx(2 * tower)
