"""Published runs against their predictions: the median errors may fall, and never rise.

``reached.json`` is written by ``python benchmarks/accuracy_first_look.py --ratchet``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from costmodel.calibration.case import Case
from costmodel.calibration.read import read_cases
from costmodel.calibration.score import Scored, score_all
from costmodel.calibration.summary import report

HERE = Path(__file__).parent
CASES = read_cases(sorted((HERE / "cases").glob("*.jsonl")))
REACHED: dict[str, dict[str, Any]] = json.loads((HERE / "reached.json").read_text(encoding="utf-8"))
SLACK = 0.002
"""By how much a median may rise without being called worse."""

SEVEN_B = [case for case in CASES if "7b" in case.model.word("name")]
PAIRS = [(group, metric) for group, metrics in REACHED.items() for metric in metrics]


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    return report(CASES)


@pytest.fixture(scope="module")
def scored() -> dict[str, Scored]:
    return {s.case.id: s for s in score_all(CASES)[0]}


def test_every_bundled_case_is_scored(found: dict[str, dict[str, Any]]) -> None:
    assert [values["skipped"] for values in found.values() if values["skipped"]] == []
    assert set(found) == set(REACHED)


@pytest.mark.parametrize(("group", "metric"), PAIRS)
def test_median_error_is_no_worse(
    found: dict[str, dict[str, Any]], group: str, metric: str
) -> None:
    now, before = found[group][metric], REACHED[group][metric]

    assert now["n"] == before["n"]
    assert now["median"] <= before["median"] + SLACK


def test_every_case_says_where_it_is_from() -> None:
    assert all(case.url.startswith("https://") for case in CASES)
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("name", ["0012", "0013", "0014"])
def test_static_bytes_of_a_stated_model_are_exact(scored: dict[str, Scored], name: str) -> None:
    """Llama-sized GPT on tp 4, dp 2 with a distributed optimizer: to a thousandth."""
    pair = scored[f"megatron-lm-ci-golden-va-{name}"].pairs["static"]

    assert pair.predicted == pytest.approx(pair.measured, rel=1e-3)


@pytest.mark.parametrize("case", SEVEN_B, ids=lambda case: case.id)
def test_peak_bytes_of_a_stated_model(scored: dict[str, Scored], case: Case) -> None:
    """Interleaved with eight chunks a stage, or one stage: within 2 %."""
    pair = scored[case.id].pairs["peak"]

    assert pair.predicted == pytest.approx(pair.measured, rel=0.02)
