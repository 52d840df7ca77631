"""Reports on mixed clusters and networks, and on search tools."""

import pytest

from costmodel.errors import UnknownNumberError
from costmodel.hardware.connection import connection
from costmodel.layout.packing import domains_needed
from costmodel.layout.read import load_layout
from costmodel.model.placement import Collective
from costmodel.network.groups import group_link
from planner.placement import place
from tests.layout.problems import cluster, pool_document
from tests.reports.catalogue import report
from tests.reports.setting import asked, chips, dense, estimated, is_legal, named

IB = {"link": "infiniband-hdr", "nics": 4}
ROCE = {"link": "roce-200g", "nics": 4}


@report("123")
def test_islands_of_two_fabrics_meet_over_sockets() -> None:
    where = cluster(pool_document("a", 2), pool_document("b", 2, scale_out=ROCE))
    between = connection(where, "a", "b")

    assert between.transport == "tcp"
    assert connection(where, "a", "a").transport != "tcp"
    assert connection(where, "b", "b").transport != "tcp"


@report("125")
def test_two_fabrics_on_one_island_are_slower_than_either() -> None:
    pools = (
        pool_document("a", 2, island="x"),
        pool_document("b", 2, island="x", scale_out=ROCE),
    )
    where = cluster(*pools)

    def rate(first: str, second: str) -> float:
        path = connection(where, first, second)
        return path.chip_bytes_per_s * path.efficiency["all_reduce"]

    assert connection(where, "a", "b").transport == "tcp"
    assert rate("a", "b") < 0.5 * min(rate("a", "a"), rate("b", "b"))


@report("126")
def test_old_cards_refuse_the_new_precision() -> None:
    old = pool_document(
        "b", 1, chip="nvidia-v100-sxm-32g", scale_up="nvlink2", measured={"efficiency": 0.5}
    )
    where = asked(dense(), cluster(pool_document("a", 1), old))

    with pytest.raises(UnknownNumberError, match="does not compute in bf16"):
        estimated(where, "tp=8,pp=2")
    half = asked(dense(), where.cluster, precision="fp16")
    assert estimated(half, "tp=8,pp=2").evaluation.step_time_s > 0


@report("127")
def test_two_vendors_share_a_layer_over_the_hosts() -> None:
    other = pool_document(
        "b", 1, chip="amd-mi300x", scale_up="xgmi-mi300x", measured={"efficiency": 0.5}
    )
    where = asked(dense(), cluster(pool_document("a", 1), other))
    layout = load_layout(where, "tp=8,dp=2,outer=dp")
    path = connection(where.cluster, "a", "b")

    assert not path.one_communicator
    assert path.transport == "host-staged"
    assert len(layout.pipelines) == 2
    found = estimated(where, "tp=8,dp=2,outer=dp").warnings
    assert any("amd and nvidia" in text.lower() for text in found)


def across(nics: int, ranks_per_node: int) -> float:
    """Bandwidth of a rank of an all-reduce over two nodes."""
    (pool,) = chips(16, scale_out={"link": "infiniband-hdr", "nics": nics}).pools
    stride = 8 // ranks_per_node
    return group_link(pool, 2 * ranks_per_node, stride, Collective.ALL_REDUCE).bytes_per_s


@report("131")
def test_two_nics_give_twice_the_bandwidth() -> None:
    assert across(2, 8) == pytest.approx(2 * across(1, 8), rel=0.01)
    assert across(2, 8) < across(4, 8) <= 2 * across(2, 8)


@report("131b")
def test_bandwidth_grows_with_the_nics_used() -> None:
    one, two, four = (across(nics=8, ranks_per_node=ranks) for ranks in (1, 2, 4))

    assert two == pytest.approx(2 * one, rel=0.1)
    assert four == pytest.approx(2 * two, rel=0.1)


@report("132b")
def test_every_stage_has_its_own_recompute() -> None:
    where = asked(dense(), 2)
    stages = [
        {"pool": "a", "chunks": [[0, 7]], "recompute": {"mode": "full"}},
        {"pool": "a", "chunks": [[7, 8]]},
    ]
    found = estimated(where, {"pipelines": [{"microbatches": 256, "stages": stages}]})
    first, last = found.evaluation.stages[0]
    without = estimated(where, "pp=2,layers=7/1").evaluation.stages[0]

    assert first.memory.activations < without[0].memory.activations / 2
    assert last.memory.activations == without[1].memory.activations


@report("132d")
def test_two_kinds_of_card_in_one_pipeline() -> None:
    pools = (pool_document("a", 1), pool_document("b", 1, chip="nvidia-h100-sxm-80g"))
    layout = load_layout(asked(dense(), cluster(*pools)), "tp=8,pp=2")

    assert [stage.option.pool for stage in layout.pipelines[0].stages] == ["a", "b"]


@report("132e")
def test_nodes_of_different_size() -> None:
    where = asked(dense(), cluster(pool_document("a", 1), pool_document("b", 1, chips_per_node=4)))
    stages = [
        {"pool": "a", "tp": 8, "chunks": [[0, 6]]},
        {"pool": "b", "tp": 4, "chunks": [[6, 8]]},
    ]

    assert is_legal(where, {"pipelines": [{"microbatches": 256, "stages": stages}]})


@report("133")
def test_group_of_eight_in_nodes_of_seven() -> None:
    small = pool_document("a", 2, chips_per_node=7)
    where = asked(dense(), cluster(small, pool_document("b", 1)))
    found = estimated(where, "tp=8,dp=2,outer=dp").warnings

    assert any("tp 8 spans several scale-up domains of 7 chips in pool a" in w for w in found)
    assert not any("in pool b" in warning for warning in found)


@report("134")
def test_leaves_that_can_hold_a_slice() -> None:
    leaves = (1, 1, 2, 2, 2, 3, 3, 3, 5, 5, 6, 6, 6, 8, 11)

    assert [size for size in leaves if domains_needed({8: 1}, size) == 1] == [8, 11]


@report("138")
def test_a_hundred_and_eighty_chips() -> None:
    graph = dense(
        hidden_size=3840,
        num_attention_heads=60,
        num_key_value_heads=60,
        intermediate_size=7200,
        num_hidden_layers=180,
    )
    where = asked(graph, chips(180, chips_per_node=4), global_batch_size=180, sequence_length=3600)
    divisors = [d for d in range(1, 181) if 180 % d == 0]
    triples = [
        (tp, pp, 180 // (tp * pp)) for tp in (1, 2, 4) for pp in divisors if 180 % (tp * pp) == 0
    ]

    assert len(triples) == 36
    assert all(is_legal(where, f"tp={t},pp={p},dp={d}") for t, p, d in triples)


@report("139")
def test_model_larger_than_the_cluster() -> None:
    found = estimated(asked(named("llama3.1-405b"), 8), "tp=8")
    (nearest,) = found.changes

    assert found.missing_bytes > 0
    assert 0 < nearest.missing_bytes < found.missing_bytes


@report("141")
def test_two_stages_are_two_nodes() -> None:
    where = asked(dense(), chips(8, chips_per_node=4))
    layout = load_layout(where, "tp=4,pp=2")

    assert place(where.cluster, layout) == ((((0,),), ((1,),)),)


@report("142")
def test_bytes_follow_from_the_model() -> None:
    narrow, wide = (
        estimated(asked(dense(hidden_size=width), 2), "pp=2").evaluation.stages[0][0].memory
        for width in (1024, 2048)
    )

    assert wide.weights > 1.9 * narrow.weights
    assert wide.activations > 1.2 * narrow.activations


@report("143")
def test_communication_does_not_follow_the_source_of_compute_times() -> None:
    line = "tp=4,pp=2,dp=2"
    usual, measured = (
        estimated(asked(dense(), chips(16, measured=source)), line).evaluation.stages[0][0].time
        for source in (None, {"throughput": "10 TFLOP/s"})
    )

    assert measured.forward_s > 2 * usual.forward_s
    assert measured.tp_s == usual.tp_s


@report("144c")
def test_compute_scales_with_the_split() -> None:
    few, many = (
        estimated(asked(dense(), number), f"dp={number}").evaluation.breakdown["compute"]
        for number in (4, 8)
    )

    assert few == pytest.approx(2 * many)
