"""Even splits of layers."""

from hypothesis import given
from hypothesis import strategies as st

from costmodel.layout.split import balanced, dealt, described, ranges, with_ends
from costmodel.schedules.passes import line


@given(st.integers(0, 200), st.integers(1, 64))
def test_balanced_split_is_whole_and_even(layers: int, stages: int) -> None:
    counts = balanced(layers, stages)

    assert len(counts) == stages
    assert sum(counts) == layers
    assert max(counts) - min(counts) <= 1
    assert list(counts) == sorted(counts)


@given(st.integers(1, 60), st.integers(1, 8), st.integers(1, 4))
def test_dealt_chunks_cover_every_layer_once(layers: int, stages: int, virtual: int) -> None:
    chunks = dealt(balanced(layers, stages * virtual), line(stages, virtual))
    visited = [own[v] for v in range(virtual) for own in chunks]

    assert [x for start, stop in visited for x in range(start, stop)] == list(range(layers))


def test_ends_may_be_given() -> None:
    assert with_ends(9, 4, 2, 1) == (2, 3, 3, 1)
    assert with_ends(9, 4, None, 3) == (2, 2, 2, 3)


def test_ranges_follow_each_other() -> None:
    assert list(ranges((2, 0, 1))) == [(0, 2), (2, 2), (2, 3)]


def test_description_counts_stages() -> None:
    assert described((2, 2, 2, 3, 3)) == "3 x 2, 2 x 3"
