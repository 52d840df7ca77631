"""Verdicts on plans before and after."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.regression import Result, Verdict, compare, compare_case

TIMES = st.floats(min_value=1e-3, max_value=1e6)


def result(step_time_s: float | None) -> Result:
    return Result(step_time_s=step_time_s)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (result(1.0), result(1.0), Verdict.SAME),
        (result(1.0), result(1.02), Verdict.SAME),
        (result(1.0), result(1.03), Verdict.SLOWER),
        (result(1.0), result(0.9), Verdict.FASTER),
        (result(1.0), result(None), Verdict.LOST),
        (result(None), result(1.0), Verdict.FOUND),
        (result(None), result(None), Verdict.SAME),
        (None, result(1.0), Verdict.NEW),
        (result(1.0), None, Verdict.MISSING),
    ],
)
def test_verdicts(before: Result | None, after: Result | None, verdict: Verdict) -> None:
    assert compare_case("x", before, after, threshold=0.0201).verdict is verdict


def test_only_worse_does_not_pass() -> None:
    failing = {verdict for verdict in Verdict if not verdict.passed}

    assert failing == {Verdict.SLOWER, Verdict.LOST, Verdict.MISSING}


def test_every_case_of_either_side_is_compared() -> None:
    before, after = {"a": result(1), "b": result(1)}, {"b": result(1), "c": result(1)}

    assert [c.name for c in compare(before, after, threshold=0)] == ["b", "c", "a"]


@given(before=TIMES, after=TIMES, threshold=st.floats(min_value=0, max_value=1))
def test_it_cannot_get_slower_both_ways(before: float, after: float, threshold: float) -> None:
    there = compare_case("x", result(before), result(after), threshold=threshold)
    back = compare_case("x", result(after), result(before), threshold=threshold)

    assert not (there.verdict is Verdict.SLOWER and back.verdict is Verdict.SLOWER)
