"""The fit of a stack's constants, on runs whose constants are known."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from costmodel.calibration.fit import (
    FIRST_SPREAD,
    Sample,
    Spreads,
    Weighing,
    before,
    near_stack,
    pool,
    sample,
    solve,
    spreads,
    timed_cases,
)
from costmodel.calibration.linear import linearised, moved, position, step_seconds
from costmodel.calibration.parameters import PARAMETERS
from costmodel.calibration.prepare import Prepared
from costmodel.calibration.protocols import known_stack, rows_of
from costmodel.calibration.protocols import unknown_stack as unknown
from costmodel.calibration.write import write_intervals, write_profiles, yaml_number
from costmodel.safe_document import load_document
from tests.accuracy.test_bundled_cases import CASES

BEFORE = before()
NAMES = [parameter.name for parameter in PARAMETERS]


@pytest.fixture(scope="module")
def stacks() -> Mapping[str, list[Prepared]]:
    timed = timed_cases(CASES)
    return {name: timed[name][::3] for name in ("megatron-2021", "nanotron")}


@pytest.fixture(scope="module")
def known(stacks: Mapping[str, list[Prepared]]) -> Sample:
    """Runs that took exactly as long as predicted with products a tenth slower."""
    slower = replace(BEFORE, gemm=0.9 * BEFORE.gemm)
    cases = [replace(c, step_s=step_seconds(c, slower)) for c in stacks["megatron-2021"]]
    return sample(cases)


def test_the_fit_finds_the_constants_that_made_the_runs(known: Sample) -> None:
    """What the products lost is found, spread over the constants that act alike."""
    prior = position(BEFORE, PARAMETERS)
    near = linearised(known.cases, BEFORE, PARAMETERS)
    fitted = solve([(near, known.weighing)], prior)
    before, after = near.residual(prior), near.residual(fitted.x)

    assert np.abs(after).max() < 0.3 * np.abs(before).max()
    assert fitted.efficiency.gemm < BEFORE.gemm
    assert (fitted.deviation > 0).all()


def test_without_runs_the_prior_stays() -> None:
    prior = position(BEFORE, PARAMETERS)

    assert solve([], prior).x == pytest.approx(prior, abs=1e-6)


def test_constants_stay_within_their_bounds() -> None:
    high = moved(BEFORE, PARAMETERS, np.full(len(PARAMETERS), 50.0))

    assert [getattr(high, p.name) for p in PARAMETERS] == [p.high for p in PARAMETERS]


def test_both_protocols_predict_what_they_have_not_seen(
    stacks: Mapping[str, list[Prepared]], tmp_path: Path
) -> None:
    pooled = pool(stacks)
    held = unknown(stacks, pooled)
    near = {name: near_stack(pooled, name, cases) for name, cases in stacks.items()}
    folds = known_stack(stacks, pooled, near)

    assert len(held) == sum(map(len, stacks.values()))
    assert 0 < len(folds) <= len(held)
    assert {row.id for row in rows_of(held)} == {c.case.id for s in stacks.values() for c in s}
    assert all(row.half_width > 0 for row in (*rows_of(held), *rows_of(folds)))

    between = spreads(pooled, near)
    (tmp_path / "default.yaml").write_text("title: any\n", encoding="utf-8")
    (tmp_path / "nanotron.yaml").write_text(
        "title: one\nruns:\n  tied: true\n  logit_bytes: 4.0\n", encoding="utf-8"
    )
    (tmp_path / "intervals.yaml").write_text("class_defaults: 1.3\nknown: []\n", encoding="utf-8")
    write_profiles(tmp_path, pooled, near, between)
    write_profiles(tmp_path, pooled, near, between)
    write_intervals(tmp_path, {"known": (1.0, 0.2)}, {"nanotron": (None, 0.1)})
    default = load_document((tmp_path / "default.yaml").read_bytes())
    stack = load_document((tmp_path / "nanotron.yaml").read_bytes())
    widths = load_document((tmp_path / "intervals.yaml").read_bytes())

    assert {key for key, entry in default["efficiency"].items() if entry.get("fitted")} == {*NAMES}
    assert all("between" in default["efficiency"][name] for name in NAMES)
    assert stack["runs"] == {"tied": True, "logit_bytes": 4.0}
    assert set(stack["efficiency"]) <= {*NAMES}
    assert widths == {
        "class_defaults": 1.3,
        "known": [1.0, 0.2],
        "stacks": {"nanotron": [None, 0.1]},
    }


def test_the_stacks_tell_how_far_apart_they_are(stacks: Mapping[str, list[Prepared]]) -> None:
    """Where the runs tell nothing the spread stays what it was thought to be."""
    pooled = pool(stacks)
    near = {name: near_stack(pooled, name, cases) for name, cases in stacks.items()}
    between = spreads(pooled, near)
    at = NAMES.index("expert_gemm")

    assert (between.all > 0.0).all()
    assert between.all[at] == pytest.approx(FIRST_SPREAD[at], rel=0.02)
    assert between.without("nanotron") == pytest.approx(np.sqrt(between.squared["megatron-2021"]))
    assert Spreads(squared={}).all == pytest.approx(FIRST_SPREAD)


def test_residuals_that_models_share_become_independent() -> None:
    """``W (1 + r^2 1 1') W' = 1`` for a model of four rows and one of one."""
    model = np.array([0, 0, 0, 0, 1])
    weighing = Weighing(weight=np.ones(5), model=model, shared=0.5)
    matrix = np.array([weighing.of(column) for column in np.eye(5)]).T
    covariance = np.eye(5) + 0.25 * (model[:, None] == model)

    assert matrix @ covariance @ matrix.T == pytest.approx(np.eye(5), abs=1e-12)


@pytest.mark.parametrize("value", [0.123456, 2e-5, 1e9, 393.0, True, 1.5])
def test_numbers_are_written_as_yaml_reads_them(value: float) -> None:
    read = load_document(f"x: {yaml_number(value)}".encode())["x"]

    assert isinstance(read, bool) == isinstance(value, bool)
    assert read == pytest.approx(value, rel=5e-3)
