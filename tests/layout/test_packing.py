"""Packing of groups into nodes, against trying everything."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from costmodel.layout.packing import domains_needed, idle_share
from tests.layout.test_rules_twin import packs

DOMAIN = 8


def fewest(groups: list[int]) -> int:
    count = 0
    while not packs(tuple(sorted(groups, reverse=True)), (DOMAIN,) * count):
        count += 1
    return count


@given(st.lists(st.sampled_from([1, 2, 4, 8]), max_size=9))
def test_powers_of_two_need_the_fewest_domains(groups: list[int]) -> None:
    assert domains_needed(Counter(groups), DOMAIN) == fewest(groups)


@given(st.lists(st.integers(1, 8), max_size=7))
def test_other_sizes_never_need_fewer_than_there_are(groups: list[int]) -> None:
    needed = domains_needed(Counter(groups), DOMAIN)

    assert needed >= fewest(groups)
    assert needed <= len(groups)


def test_wide_groups_take_whole_domains() -> None:
    assert domains_needed({16: 2}, DOMAIN) == 4
    assert domains_needed({12: 2, 4: 2}, DOMAIN) == 4


def test_many_groups_are_counted_without_listing_them() -> None:
    assert domains_needed({8: 10**9, 3: 10**9}, DOMAIN) == 10**9 + 5 * 10**8


def test_three_chips_stay_idle_beside_a_group_of_five() -> None:
    assert [idle_share(tp, DOMAIN) for tp in (1, 5, 8, 12)] == [0, 3, 0, 4]
