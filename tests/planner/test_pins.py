"""What is pinned holds in the plan, whatever executes it."""

import pytest

from costmodel.hardware.read import load_cluster
from costmodel.layout.values import Layout
from costmodel.model.read import load_model
from planner import Job, plan
from planner.pins import Pins, pinned
from planner.targets.registry import targets
from planner.wishes import Wishes

JOB = Job(global_batch_size=256, sequence_length=4096)
CASES = {
    "tp": Pins(degrees={"tp": frozenset({4})}),
    "recompute": Pins(degrees={"recompute": frozenset({"full"})}),
    "micro-batch": Pins(degrees={"micro_batch_size": frozenset({2}), "zero": frozenset({1})}),
    "stages": Pins(stages=frozenset({8})),
    "order": Pins(pool_order=("roce", "ib")),
    "equal tp": Pins(equal_tp=True),
    "templates": Pins(templates=1),
}


def planned(pins: Pins, target: str) -> Layout:
    found = plan(
        load_model("llama3-8b"),
        load_cluster("hybrid-64"),
        JOB,
        target=target,
        time_limit_s=30.0,
        wishes=Wishes(pins=pins),
    )
    assert found.layout is not None
    rules = pinned(targets()[found.target], pins)
    assert rules.violations(found.problem, found.layout) == ()
    return found.layout


@pytest.mark.parametrize("target", ["any", "flagscale", "megatron"])
@pytest.mark.parametrize("name", CASES)
def test_pins_hold(name: str, target: str) -> None:
    layout = planned(CASES[name], target)
    stages = [stage for pipeline in layout.pipelines for stage in pipeline.stages]

    if name == "tp":
        assert {stage.option.tp for stage in stages} == {4}
    elif name == "recompute":
        assert {stage.option.recompute for stage in stages} == {"full"}
    elif name == "stages":
        assert {len(pipeline.stages) for pipeline in layout.pipelines} == {8}
    elif name == "order":
        for pipeline in layout.pipelines:
            pools = [stage.option.pool for stage in pipeline.stages]
            assert pools == sorted(pools, reverse=True)
    elif name == "equal tp":
        assert len({stage.option.tp for stage in stages}) == 1
    elif name == "templates":
        assert len({pipeline.stages for pipeline in layout.pipelines}) == 1


def test_a_pin_that_leaves_nothing_is_named() -> None:
    found = plan(
        load_model("llama3-8b"),
        load_cluster("hybrid-64"),
        JOB,
        target="megatron",
        wishes=Wishes(pins=Pins(degrees={"tp": frozenset({3})})),
    )

    assert found.status == "infeasible"
    assert found.shortfall is not None
    assert "pin.tp" in found.shortfall.constraint
