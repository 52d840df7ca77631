"""Error statistics: absolute for the size, signed for the bias."""

import pytest

from costmodel.calibration.read import read_cases
from costmodel.calibration.score import Pair, Skipped, score_all
from costmodel.calibration.summary import errors, groups, reasons, report, worst_cases
from tests.accuracy.test_bundled_cases import CASES


def test_error_is_predicted_over_measured() -> None:
    assert Pair(predicted=3.0, measured=2.0).error == pytest.approx(0.5)
    assert Pair(predicted=1.0, measured=2.0).error == pytest.approx(-0.5)


def test_statistics_of_scored_cases() -> None:
    scored, _ = score_all(CASES[:4])
    signed = sorted(s.pairs["time"].error for s in scored)
    got = errors(scored, "time")

    assert got is not None
    assert got.n == 4
    assert got.median == pytest.approx(sum(sorted(map(abs, signed))[1:3]) / 2)
    assert got.bias == pytest.approx((signed[1] + signed[2]) / 2)
    assert got.worst == max(map(abs, signed))
    assert got.worst_id == worst_cases(scored, "time", 1)[0].case.id
    assert errors(scored, "static") is None


def test_groups_keep_small_models_apart() -> None:
    found = groups(CASES)

    assert sum(map(len, found.values())) == len(CASES)
    assert {name for name in found if "models" in name} == {
        "Megatron-LM CI golden values, small models",
        "Megatron-LM CI golden values, large models",
    }


def test_reasons_are_counted_most_frequent_first() -> None:
    skipped = [Skipped(case=CASES[0], reason=reason) for reason in ("b", "a", "b")]

    assert list(reasons(skipped).items()) == [("b", 2), ("a", 1)]


def test_a_report_counts_every_row() -> None:
    found = report(CASES, min_quality="A")

    for name, cases in groups(CASES).items():
        assert found[name]["rows"] == len(cases)
        assert found[name]["scored"] + sum(found[name]["skipped"].values()) == len(cases)


def test_reading_nothing_is_empty() -> None:
    assert read_cases([]) == ()
