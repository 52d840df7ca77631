"""Every baseline proposes a legal layout that keeps its own rule, scored as any other."""

from functools import cache
from itertools import pairwise

import pytest

from costmodel.hardware.read import load_cluster
from costmodel.layout.rules import violations
from costmodel.layout.values import Layout
from costmodel.model.read import load_model
from costmodel.problem import Problem
from costmodel.step import evaluate
from planner import Job, plan
from planner.baselines.baseline import BaselineRule, Setting
from planner.baselines.holmes import dealt
from planner.baselines.registry import baseline_rules, compared, seconds_of
from planner.pricing import priced
from planner.space import declare
from planner.watch import Watch
from planner.wishes import Wishes
from tests.project.sources import ROOT

JOB = Job(global_batch_size=256, sequence_length=4096)
PROPOSING = tuple(rule for rule in baseline_rules() if rule.name != "your layout")
ISLANDS = {"ib": "a", "roce": "b"}


@cache
def setting() -> Setting:
    model, cluster = load_model("llama3-8b"), load_cluster("hybrid-64")
    problem = Problem(model=model, cluster=cluster, job=JOB)
    space = declare(model, cluster, JOB, target="any", evaluator="1")
    return Setting(problem=problem, instance=priced(problem, space), watch=Watch(limit_s=60.0))


@cache
def proposed(name: str) -> Layout:
    [rule] = [rule for rule in baseline_rules() if rule.name == name]
    layout = rule.propose(setting())
    assert layout is not None
    return layout


@pytest.mark.parametrize("rule", PROPOSING, ids=lambda r: r.name)
def test_a_baseline_proposes_a_legal_layout_that_fits(rule: BaselineRule) -> None:
    layout = proposed(rule.name)

    assert violations(setting().problem, layout) == ()
    assert evaluate(setting().problem, layout).fits


@pytest.mark.parametrize("rule", baseline_rules(), ids=lambda r: r.name)
def test_a_baseline_is_described(rule: BaselineRule) -> None:
    page = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")

    assert rule.sentence.endswith(".")
    assert rule.source
    assert f"| `{rule.name}` | {rule.sentence} |" in page


def test_names_and_places_are_unique() -> None:
    assert len({rule.name for rule in baseline_rules()}) == len(baseline_rules())
    assert len({rule.order for rule in baseline_rules()}) == len(baseline_rules())


def degrees_of(layout: Layout) -> set[tuple[int, int, int]]:
    return {
        (s.option.tp, s.option.replicas, s.option.micro_batch_size)
        for p in layout.pipelines
        for s in p.stages
    }


@pytest.mark.parametrize("name", ["uniform", "holmes", "amp"])
def test_one_set_of_degrees(name: str) -> None:
    assert len(degrees_of(proposed(name))) == 1


def test_uniform_layers_differ_by_one_at_most() -> None:
    held = {stage.num_layers for p in proposed("uniform").pipelines for stage in p.stages}

    assert max(held) - min(held) <= 1


def test_a_single_pool_is_one() -> None:
    pools = {s.option.pool for p in proposed("single pool").pipelines for s in p.stages}

    assert len(pools) == 1


def test_holmes_visits_every_island_once_and_shares_no_stage() -> None:
    [pipeline] = proposed("holmes").pipelines
    islands = [ISLANDS[stage.option.pool] for stage in pipeline.stages]

    assert sum(a != b for a, b in pairwise(islands)) == 1


def test_layers_are_dealt_in_proportion_to_speed() -> None:
    """Holmes's example: 30 layers, 16 on InfiniBand and 14 on RoCE at 8 : 7."""
    instance = setting().instance
    assert instance.num_layers == 32

    assert dealt([1.0, 1.0], [1, 1], instance) == [16, 16]
    assert dealt([5.0, 3.0], [1, 1], instance) == [20, 12]
    assert dealt([1000.0, 1.0], [1, 4], instance) == [28, 4]


def test_flagscale_meshes_are_even_inside() -> None:
    layout = proposed("flagscale grid")
    for pipeline in layout.pipelines:
        for pool in ISLANDS:
            held = [s.num_layers for s in pipeline.stages if s.option.pool == pool]
            assert not held or max(held) - min(held) <= 1
    assert len({s.option.recompute for p in layout.pipelines for s in p.stages}) == 1


def test_metis_does_not_recompute() -> None:
    modes = {s.option.recompute for p in proposed("metis").pipelines for s in p.stages}

    assert modes == {"none"}


def test_all_are_compared_and_none_is_faster_than_the_plan() -> None:
    given = proposed("amp")
    found = plan(
        load_model("llama3-8b"),
        load_cluster("hybrid-64"),
        JOB,
        target="any",
        time_limit_s=60.0,
        wishes=Wishes(every_baseline=True, given=given),
    )
    times = {b.name: b.step_time_s for b in found.baselines}

    assert list(times) == [rule.name for rule in baseline_rules()]
    assert times["your layout"] == times["amp"]
    assert all(s is None or s >= found.step_time_s * (1 - 1e-9) for s in times.values())


def test_only_the_cheap_ones_go_with_every_plan() -> None:
    names = [b.name for b in compared(setting(), 1.0, every=False)]

    assert names == ["uniform", "single pool", "without slowest pool"]


def test_no_layout_has_no_time() -> None:
    assert seconds_of(setting().problem, None) is None
