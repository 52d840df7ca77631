"""Laws of the collective times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.frame import Holding
from costmodel.hardware.values import Cluster
from costmodel.holders import Segment
from costmodel.layout.values import Layout, StageOption
from costmodel.model.placement import Collective
from costmodel.network import collectives
from costmodel.network.groups import SCALE_OUT_HOP
from costmodel.network.phases import Side, phase_seconds
from costmodel.network.synchronisation import segment_sync
from tests.costmodel.cases import TWO_ISLANDS, cluster, pipeline, pool, problem

payloads = st.floats(min_value=1.0, max_value=1e12)
ranks = st.integers(min_value=1, max_value=4096)


def seconds(step: Collective, payload: float, n: int, latency: float = 0.0) -> float:
    one = [np.asarray(x, dtype=np.float64) for x in (payload, n, 1e10, latency)]
    return float(collectives.seconds(step, *one))


@given(payloads, st.integers(min_value=1, max_value=7))
def test_an_all_reduce_is_a_scatter_and_a_gather_with_one_launch(payload: float, n: int) -> None:
    halves = seconds(Collective.REDUCE_SCATTER, payload, n)
    halves += seconds(Collective.ALL_GATHER, payload, n)
    launch = collectives.BASE_LATENCY_S if n > 1 else 0.0
    assert seconds(Collective.ALL_REDUCE, payload, n) + launch == pytest.approx(halves)


@given(payloads, ranks)
def test_a_tree_spares_steps_of_large_groups(payload: float, n: int) -> None:
    halves = seconds(Collective.REDUCE_SCATTER, payload, n, latency=1e-6)
    halves += seconds(Collective.ALL_GATHER, payload, n, latency=1e-6)
    assert seconds(Collective.ALL_REDUCE, payload, n, latency=1e-6) <= halves * (1 + 1e-12)


@given(payloads, st.sampled_from(list(Collective)))
def test_one_rank_needs_no_time(payload: float, step: Collective) -> None:
    assert seconds(step, payload, 1, latency=1e-5) == 0.0


@given(payloads, ranks, st.sampled_from(list(Collective)))
def test_more_bytes_and_more_ranks_never_take_less(
    payload: float, n: int, step: Collective
) -> None:
    here = seconds(step, payload, n, latency=1e-6)
    assert seconds(step, 2 * payload, n, latency=1e-6) >= here
    assert seconds(step, payload, n + 1, latency=1e-6) >= here


def test_a_ring_moves_twice_the_share_of_the_others() -> None:
    """2 (n - 1) / n S / beta: 8 ranks, 1 GB, 10 GB/s (Thakur et al. 2005, section 4.5)."""
    fill = 2 * 2 * 3 * collectives.FILL_S  # up and down a tree of depth 3, twice
    expected = 2 * 7 / 8 * 0.1 + fill + collectives.BASE_LATENCY_S
    assert seconds(Collective.ALL_REDUCE, 1e9, 8) == pytest.approx(expected)


@given(st.integers(min_value=1, max_value=collectives.RING_STEPS))
def test_a_ring_of_small_parts_runs_at_half_its_rate(n: int) -> None:
    small = n * 1e10 * collectives.FILL_S / 2.0
    volume = collectives.wire_share(Collective.ALL_GATHER, np.asarray(float(n))) * small / 1e10
    launch = collectives.BASE_LATENCY_S if n > 1 else 0.0
    assert seconds(Collective.ALL_GATHER, small, n) == pytest.approx(2.0 * float(volume) + launch)


def side(name: str, n: int, stride: int = 8, payload: float = 1e9) -> Side:
    return Side(pool=name, ranks=n, stride=stride, payload_bytes=payload)


def busy(where: Cluster, sides: list[Side]) -> float:
    return max(phase_seconds(where, sides, Collective.REDUCE_SCATTER).values())


def test_one_side_is_a_ring_over_its_share_of_the_nics() -> None:
    """Stride 8: one rank a node, so an eighth of 8 NICs of 25 GB/s at 80 %; every hop crosses."""
    got = busy(TWO_ISLANDS, [side("p", 4)])
    steps = 3 * (SCALE_OUT_HOP * 1e-5 + collectives.FILL_S)
    assert got == pytest.approx(3 / 4 * 1e9 / 20e9 + collectives.BASE_LATENCY_S + steps)


def test_a_second_island_adds_the_exchange_over_its_link() -> None:
    """Each of two sides with 4 ranks hands half of its quarter to the other over one 3 GB/s NIC
    shared by 8 chips."""
    one = busy(TWO_ISLANDS, [side("p", 4)])
    two = busy(TWO_ISLANDS, [side("p", 4), side("q", 4)])
    assert two - one == pytest.approx(0.5 * 1e9 / 4 / (3e9 / 8 * 0.8) + 1e-5)


def test_a_pool_with_few_ranks_is_busy_longer_than_its_partners() -> None:
    times = phase_seconds(TWO_ISLANDS, [side("p", 4), side("q", 2)], Collective.REDUCE_SCATTER)
    assert times["q"] > 1.8 * times["p"]


def test_pools_of_one_island_are_joined_by_their_fabric() -> None:
    same = cluster(pool("p"), pool("q"))
    over = busy(same, [side("p", 4), side("q", 4)])
    far = busy(TWO_ISLANDS, [side("p", 4), side("q", 4)])
    assert over < far


@pytest.mark.parametrize(("zero", "parts"), [(1, 1), (2, 32), (3, 32)])
def test_fully_sharded_layers_travel_one_by_one(zero: int, parts: int) -> None:
    """From ZeRO 2 on each of 32 layers has its latency; the bytes are the same."""
    option = StageOption(pool="p", replicas=32, zero=zero)
    layout = Layout(pipelines=(pipeline((option,), (0, 32), 1),))
    segment = Segment(start=0, stop=32, holders=((0, 0),))
    held = Holding(dense=8e9, expert=0.0)
    (got,) = segment_sync(problem(), layout, segment, [held])
    one = side("p", 32, 1, 8e9 * problem().job.gradient_bytes / parts)

    expected = parts * phase_seconds(TWO_ISLANDS, [one], Collective.REDUCE_SCATTER)["p"]
    assert got.reduce_s == pytest.approx(expected)
