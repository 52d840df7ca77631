"""Wrong cost models and larger clusters: what they would change of a plan."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from costmodel.hardware.read import load_cluster
from costmodel.model.read import load_model
from costmodel.step import evaluate
from planner import Job, Plan, plan
from planner.node_values import node_values, with_more
from planner.uncertainty import robustness, world
from service.cli.text.what_if_text import robustness_lines
from service.what_if import what_if_document

JOB = Job(global_batch_size=256, sequence_length=4096)


@cache
def planned() -> Plan:
    return plan(load_model("llama3-8b"), load_cluster("hybrid-64"), JOB, target="megatron")


def test_the_choice_is_scored_inworlds_that_all_layouts_share() -> None:
    found = robustness(planned(), draws=8, search_s=2.0)
    assert found is not None

    assert found.rivals > 0
    assert found.draws == 8
    assert 0.0 <= found.probability_best <= 1.0
    assert found.expected_regret >= 0.0
    assert found.best_rival_relative is not None
    assert found.best_rival_relative >= -1e-9
    assert found.survives == (found.expected_regret <= 0.01)


def test_the_same_plan_gets_the_same_answer() -> None:
    assert robustness(planned(), draws=4, search_s=20.0) == robustness(
        planned(), draws=4, search_s=20.0
    )


def test_no_error_changes_nothing_and_slow_chips_cost_time() -> None:
    problem, layout = planned().problem, planned().layout
    assert layout is not None
    now_s = evaluate(problem, layout).step_time_s

    same = world(problem, np.random.default_rng(0), 0.0)
    assert evaluate(same, layout).step_time_s == pytest.approx(now_s, rel=1e-12)
    other = world(problem, np.random.default_rng(0), 0.3)
    assert evaluate(other, layout).step_time_s != pytest.approx(now_s, rel=1e-3)


def test_pools_of_one_chip_are_wrong_together() -> None:
    a, b = world(planned().problem, np.random.default_rng(1), 0.3).cluster.pools

    assert a.chip.matmul_fraction == b.chip.matmul_fraction
    assert a.scale_out.bytes_per_s / b.scale_out.bytes_per_s != pytest.approx(
        planned().problem.cluster.pools[0].scale_out.bytes_per_s
        / planned().problem.cluster.pools[1].scale_out.bytes_per_s
    )


def test_one_more_node_never_makes_it_slower() -> None:
    values = node_values(planned(), search_s=2.0)

    assert {value.pool for value in values} == {"ib", "roce"}
    assert all(value.relative <= 0 for value in values)


def test_a_pool_grows_by_nodes() -> None:
    cluster = load_cluster("hybrid-64")
    grown = with_more(cluster, cluster.pools[0], 2)

    assert [pool.nodes for pool in grown.pools] == [6, 4]


def test_a_plan_without_a_layout_has_no_answer() -> None:
    empty = replace(planned(), layout=None, evaluation=None)

    assert what_if_document(empty) == {"robustness": None, "node_values": []}


def test_the_verdict_is_a_sentence() -> None:
    found = {
        "rivals": 3,
        "draws": 8,
        "survives": False,
        "probability_best": 0.5,
        "expected_regret": 0.02,
        "best_rival_relative": 0.01,
    }

    assert "The choice is open" in robustness_lines(found)[0]
    assert "best of 4" in robustness_lines(found)[0]
    assert "No layout" in robustness_lines(found | {"rivals": 0})[0]
    assert "1.0 % slower" in robustness_lines(found)[1]
    assert "2.0 % faster" in robustness_lines(found | {"best_rival_relative": -0.02})[1]
