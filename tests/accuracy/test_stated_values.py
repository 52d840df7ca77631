"""Misspelled settings of a case are reasons not to predict it, not other settings."""

import pytest

from costmodel.calibration.score import Scored, score
from costmodel.calibration.stated_schedule import is_known_schedule
from costmodel.calibration.stated_values import is_known_recompute
from tests.accuracy.test_reading import case, reason


@pytest.mark.parametrize(
    ("section", "key", "value", "why"),
    [
        ("parallel", "recompute", "ful", "recompute ful not known"),
        ("parallel", "recompute", True, "recompute True not known"),
        ("parallel", "recompute", ["core_atn"], "recompute ['core_atn'] not known"),
        ("parallel", "schedule", "zbx", "schedule zbx not known"),
        ("parallel", "schedule", 1, "schedule 1 not known"),
        ("parallel", "zero", 7, "zero 7 not known"),
        ("parallel", "tp", 1.5, "parallel tp 1.5 not a whole number"),
        ("parallel", "tp", "4", "parallel tp 4 not a whole number"),
        ("parallel", "pp", -4, "parallel pp -4 not a whole number"),
        ("hardware", "n_chips", 8.5, "hardware n_chips 8.5 not a whole number"),
        ("model", "layers", float("nan"), "model layers nan not a whole number"),
        ("model", "layers", float("inf"), "model layers inf not a whole number"),
        ("measured", "mfu", 45, "measured mfu 45 not between 0 and 1"),
        ("measured", "mfu", 0, "measured mfu 0 not between 0 and 1"),
    ],
)
def test_what_means_nothing_is_the_reason(section: str, key: str, value: object, why: str) -> None:
    assert reason(case(**{section: {key: value}})) == why


@pytest.mark.parametrize(
    "stated",
    [
        None,
        "none listed",
        "Full/uniform/n=1",
        "full + select True",
        "selective/modules=[moe_act]",
        "select [10, 8]",
        "custom [6, 3]",
        "core_attn",
        ["norm", "act"],
        [],
    ],
)
def test_recomputation_as_published_is_known(stated: object) -> None:
    assert is_known_recompute(stated)


@pytest.mark.parametrize(
    "stated", [None, "", "1F1B (DeepSpeed)", "1F1B-interleaved", "Interleaved 1F1B", "ZB-H1"]
)
def test_schedules_as_published_are_known(stated: object) -> None:
    assert is_known_schedule(stated)


def test_whole_numbers_written_with_a_point_are_whole() -> None:
    assert isinstance(score(case(parallel={"tp": 4.0})), Scored)
