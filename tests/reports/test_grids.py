"""Reports on experts and process grids, schedules and batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.holders import data_parallel_ranks, expert_data_parallel_ranks
from costmodel.layout.read import load_layout, read_inline
from costmodel.layout.rules import warnings
from costmodel.layout.uniform import smallest_world
from planner.space import declare
from tests.layout.problems import cluster, pool_document
from tests.reports.catalogue import report
from tests.reports.setting import asked, chips, dense, estimated, is_legal, refusals, sparse


@report("43")
def test_dense_and_expert_grid_share_the_chips() -> None:
    line = "tp=1,pp=2,ep=2,etp=1,dp=2"

    assert is_legal(asked(sparse(), 4), line)
    assert smallest_world(read_inline(line)) == 4


@report("45")
def test_expert_grid_larger_than_the_cluster() -> None:
    where = asked(sparse(), 8)
    fault = "\n".join(refusals(where, "tp=2,pp=2,ep=8,etp=1,dp=2"))

    assert "x etp = 8 must divide tp x cp x replicas = 4" in fault
    assert "use ep 4, or 4 replicas (8 chips a stage)" in fault
    assert smallest_world(read_inline("tp=2,pp=2,ep=8")) == 16
    assert is_legal(where, "tp=2,pp=2,ep=4,etp=1,dp=2")


@report("46")
@pytest.mark.parametrize(("line", "fewest"), [("pp=2,tp=2,ep=8", 16), ("pp=1,tp=2,cp=4,ep=8", 8)])
def test_fewest_chips(line: str, fewest: int) -> None:
    uniform = read_inline(line)
    dp = fewest // (uniform.tp * uniform.cp * uniform.pp)
    where = asked(sparse(), chips(16))

    assert smallest_world(uniform) == fewest
    assert is_legal(where, f"{line},dp={dp}")
    assert dp == 1 or not is_legal(where, f"{line},dp={dp // 2}")


degrees = st.sampled_from([1, 2, 4])


@report("47")
@given(degrees, degrees, degrees, st.sampled_from([1, 2, 3, 4, 8, 16, 32]))
def test_bounds_of_expert_parallelism(dp: int, cp: int, tp: int, ep: int) -> None:
    where = asked(sparse(), chips(64))
    legal = (dp * cp * tp) % ep == 0 and 16 % ep == 0

    assert is_legal(where, f"tp={tp},cp={cp},dp={dp},ep={ep}") == legal


@report("49")
def test_expert_groups_wider_than_the_world_are_refused() -> None:
    fault = "\n".join(refusals(asked(sparse(), 8), "dp=8,ep=16"))

    assert "use ep 8" in fault


@report("50")
def test_more_ranks_than_experts_split_the_experts() -> None:
    where = asked(sparse(), 32)
    fault = "\n".join(refusals(where, "dp=32,ep=32"))

    assert "must divide the 16 experts" in fault
    assert "use ep 16 with etp 2" in fault
    assert is_legal(where, "dp=32,ep=16,etp=2")


@report("51")
def test_experts_without_tensor_parallelism() -> None:
    assert is_legal(asked(sparse(), 8), "tp=1,dp=8,ep=8")


@report("53")
def test_search_space_has_expert_parallelism() -> None:
    where = asked(sparse(), 8)
    space = declare(where.model, where.cluster, where.job, target="any", evaluator="test")

    assert {option.ep for option in space.options} >= {1, 2, 4, 8}


@report("54")
def test_only_the_experts_shrink() -> None:
    where = asked(sparse(n_routed_experts=2, num_experts_per_tok=1, num_nextn_predict_layers=0), 2)
    one, two = (
        estimated(where, f"dp=2,ep={ep},zero=0").evaluation.stages[0][0].memory for ep in (1, 2)
    )
    experts = 6 * 2 * 3 * 512 * 1024

    assert one.weights - two.weights == pytest.approx(2 * experts / 2)
    assert two.weights > experts


@report("55")
def test_device_groups_with_different_tp() -> None:
    where = asked(dense(), cluster(pool_document("a", 1), pool_document("b", 1)))
    first = {"pool": "a", "tp": 2, "replicas": 2}
    stages = [
        {**first, "chunks": [[0, 3]]},
        {**first, "chunks": [[3, 6]]},
        {"pool": "b", "tp": 4, "replicas": 2, "chunks": [[6, 8]]},
    ]
    found = estimated(where, {"pipelines": [{"microbatches": 128, "stages": stages}]})

    assert found.evaluation.num_chips == 16
    assert any("tp differs between stages (2 or 4)" in text for text in found.warnings)


@report("57")
def test_ten_microbatches_over_four_stages() -> None:
    where = asked(dense(), 4, global_batch_size=10)

    assert is_legal(where, "pp=4")
    fault = "\n".join(refusals(where, "pp=4,vp=2"))
    assert "use microbatches 8 or 12, or the schedule 1f1b" in fault


@report("58")
def test_a_node_leaves() -> None:
    where = asked(dense(), 24, global_batch_size=64)
    fault = "\n".join(refusals(where, "tp=8,dp=3"))

    assert "use global batch size 63 or 66" in fault
    assert "or give the pipelines different microbatches" in fault
    stage = {"pool": "a", "tp": 8, "chunks": [[0, 8]]}
    unequal = [
        {"count": 1, "microbatches": 22, "stages": [stage]},
        {"count": 2, "microbatches": 21, "stages": [stage]},
    ]
    assert is_legal(where, {"pipelines": unequal})


@report("59")
@pytest.mark.parametrize("dp", [1, 2, 4, 8])
def test_batch_does_not_change_with_dp(dp: int) -> None:
    layout = load_layout(asked(dense(), 8, global_batch_size=64), f"dp={dp},mbs=2")

    assert layout.samples == 64
    assert layout.pipelines[0].microbatches == 32 // dp


@report("61")
def test_bubble_grows_with_the_micro_batch() -> None:
    where = asked(dense(vocab_size=128, num_hidden_layers=16), 4, global_batch_size=64)
    shares: list[float] = []
    for size in (1, 2, 4, 8):
        evaluation = estimated(where, f"pp=4,mbs={size}").evaluation
        shares.append(evaluation.breakdown["bubble"] / evaluation.step_time_s)

    assert shares == sorted(shares)
    assert shares[-1] > 4 * shares[0]


@report("143b")
def test_documented_command() -> None:
    where = asked(dense(), chips(4096), global_batch_size=8192)
    (pipeline,) = load_layout(where, "tp=2,pp=1,dp=2048,mbs=1").pipelines

    assert pipeline.count * pipeline.stages[0].option.replicas == 2048
    assert pipeline.microbatches == 4


@report("143c")
@pytest.mark.parametrize(("ep", "etp"), [(1, 1), (4, 1), (8, 1), (4, 2)])
def test_dense_data_parallelism_does_not_shrink_with_ep(ep: int, etp: int) -> None:
    where = asked(sparse(), 16, global_batch_size=64)
    layout = load_layout(where, f"tp=2,dp=4,pp=2,ep={ep},etp={etp}")
    holders = [(0, 0)]

    assert data_parallel_ranks(layout, holders) == 4
    assert expert_data_parallel_ranks(layout, holders) == 16 // 2 // (ep * etp)
    assert not any("differs" in text for text in warnings(where, layout))
