"""Parts of clusters: nodes that are gone, held back, or left, and what they are called."""

from dataclasses import replace
from typing import Any

import pytest

from costmodel.errors import InputError
from costmodel.hardware.read import load_cluster
from planner.subclusters import holding_back, node_names, with_memory_margin, without_nodes


def test_dead_nodes_are_gone_and_the_others_keep_their_names() -> None:
    cluster = load_cluster("hybrid-64")

    left = without_nodes(cluster, ["ib:1", "roce:0", "roce:3"])

    assert [pool.nodes for pool in left.pools] == [3, 2]
    assert node_names(left.pool("ib")) == ("ib:0", "ib:2", "ib:3")
    assert node_names(left.pool("roce")) == ("roce:1", "roce:2")
    assert left.between == cluster.between
    assert load_cluster(left.document) == left


def test_nodes_go_by_their_own_names_too() -> None:
    document: dict[str, Any] = dict(load_cluster("hybrid-64").document)
    pools = document["pools"]
    document["pools"] = [pools[0] | {"node_names": ["a", "b", "c", "d"]}, pools[1]]
    cluster = load_cluster(document)

    assert node_names(without_nodes(cluster, ["b"]).pool("ib")) == ("a", "c", "d")
    assert without_nodes(cluster, ["ib:1"]) == without_nodes(cluster, ["b"])


def test_an_empty_pool_and_its_island_are_left_out() -> None:
    left = without_nodes(load_cluster("hybrid-64"), [f"roce:{k}" for k in range(4)])

    assert [pool.name for pool in left.pools] == ["ib"]
    assert left.between == ()


def test_a_domain_of_several_nodes_goes_as_a_whole() -> None:
    left = without_nodes(load_cluster("gb200-nvl72-576"), ["gb200:20"])

    assert left.pools[0].nodes == 144 - 18
    assert "gb200:17" in node_names(left.pools[0])
    assert "gb200:18" not in node_names(left.pools[0])


def test_unknown_nodes_are_all_named() -> None:
    with pytest.raises(InputError) as error:
        without_nodes(load_cluster("hybrid-64"), ["ib:9", "x", "ib:0"])

    assert [v.value for v in error.value.violations] == ["ib:9", "x"]
    with pytest.raises(InputError, match="a node that is left"):
        without_nodes(
            load_cluster("hybrid-64"), [f"{p}:{k}" for p in ("ib", "roce") for k in range(4)]
        )


def test_nodes_are_held_back_from_the_end() -> None:
    left = holding_back(load_cluster("hybrid-64"), {"roce": 1})

    assert node_names(left.pool("roce")) == ("roce:0", "roce:1", "roce:2")
    assert left.pool("ib").nodes == 4
    with pytest.raises(InputError) as error:
        holding_back(load_cluster("hybrid-64"), {"rocee": 1, "ib": 5})
    assert len(error.value.violations) == 2


def test_the_memory_margin_is_that_of_all_pools() -> None:
    left = with_memory_margin(load_cluster("hybrid-64"), 0.5)

    assert {pool.memory_margin for pool in left.pools} == {0.5}
    assert replace(left.pools[0], memory_margin=0.92) == load_cluster("hybrid-64").pools[0]
    with pytest.raises(InputError, match="a share above 0"):
        with_memory_margin(load_cluster("hybrid-64"), 1.5)
