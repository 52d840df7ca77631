"""Fronts over step time, cost and chips, and what objectives pick from them."""

from dataclasses import replace
from typing import Any

import pytest

from costmodel.errors import InputError
from costmodel.hardware.read import load_cluster
from costmodel.hardware.values import Cluster
from costmodel.model.read import load_model
from costmodel.problem import Problem
from planner import Job
from planner.frontier import Point, best_point, check_prices, front, parts, points

JOB = Job(global_batch_size=256, sequence_length=4096)


def priced_cluster() -> Cluster:
    document: dict[str, Any] = dict(load_cluster("hybrid-64").document)
    pools = document["pools"]
    prices = (3.0, 1.0)
    document["pools"] = [
        pool | {"price_per_chip_hour": f"{price} USD"}
        for pool, price in zip(pools, prices, strict=True)
    ]
    return load_cluster(document)


def point(step_s: float, cost: float | None, chips: int) -> Point:
    return Point(
        nodes={"a": chips // 8},
        chips=chips,
        step_time_s=step_s,
        tokens_per_s=1000.0 / step_s,
        cost_per_token=cost,
        target="any",
    )


def test_the_front_keeps_what_nothing_beats() -> None:
    fast, cheap, bad = point(1.0, 4.0, 64), point(4.0, 1.0, 16), point(5.0, 4.0, 64)

    assert front([bad, cheap, fast]) == (fast, cheap)
    assert front([fast, fast]) == (fast,)


def test_objectives_pick_from_the_front() -> None:
    fast, cheap, middle = point(1.0, 4.0, 64), point(4.0, 1.0, 16), point(2.0, 3.0, 32)
    found = [fast, cheap, middle]

    assert best_point(found, "time") == fast
    assert best_point(found, "cost") == cheap
    assert best_point(found, "chips", tokens=5000.0, deadline_s=10.0) == middle
    assert best_point(found, "chips", tokens=5000.0, deadline_s=4.0) is None
    assert best_point([point(1.0, None, 8)], "cost") is None


def test_parts_begin_with_the_whole_and_repeat_nothing() -> None:
    found = list(parts(load_cluster("hybrid-64")))
    sizes = [tuple((p.name, p.nodes) for p in cluster.pools) for cluster in found]

    assert sizes[0] == (("ib", 4), ("roce", 4))
    assert len(set(sizes)) == len(sizes)
    assert (("roce", 1),) in sizes


def test_cost_counts_the_chips_in_use_at_their_prices() -> None:
    cluster = priced_cluster()
    problem = Problem(model=load_model("llama3-8b"), cluster=cluster, job=JOB)

    found = points(problem, target="megatron", time_limit_s=60.0)
    [single] = [p for p in found if p.nodes == {"roce": 4}]

    tokens = JOB.global_batch_size * JOB.sequence_length
    expected = single.chips * 1.0 / 3600.0 * single.step_time_s / tokens
    assert single.cost_per_token == pytest.approx(expected)
    cheapest = best_point(found, "cost")
    assert cheapest is not None
    assert set(cheapest.nodes) == {"roce"}
    kept = front(found)
    assert kept[0].step_time_s == min(p.step_time_s for p in found)
    assert all(p in found for p in kept)


def test_a_pool_without_a_price_is_named() -> None:
    with pytest.raises(InputError) as error:
        check_prices(load_cluster("hybrid-64"))

    assert [v.field for v in error.value.violations] == [
        "/cluster/pools/0/price_per_chip_hour",
        "/cluster/pools/1/price_per_chip_hour",
    ]
    check_prices(replace(priced_cluster()))
