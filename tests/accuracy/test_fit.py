"""The fit of a stack's constants, on runs whose constants are known."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from costmodel.calibration.fit import (
    Sample,
    Weighing,
    before,
    near_stack,
    own_constants,
    own_weighing,
    pool,
    sample,
    solve,
    timed_cases,
)
from costmodel.calibration.kernels import SPREADS, widened
from costmodel.calibration.linear import linearised, moved, position, step_seconds
from costmodel.calibration.parameters import PARAMETERS
from costmodel.calibration.prepare import Prepared
from costmodel.calibration.protocols import known_stack, rows_of
from costmodel.calibration.protocols import unknown_stack as unknown
from costmodel.calibration.write import write_intervals, write_profiles, yaml_number
from costmodel.safe_document import load_document
from costmodel.software.values import KernelShares
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

    own = own_constants(pooled, near)
    del own["megatron-2021"]
    (tmp_path / "default.yaml").write_text("title: any\n", encoding="utf-8")
    (tmp_path / "nanotron.yaml").write_text(
        "title: one\nruns:\n  tied: true\n  logit_bytes: 4.0\n", encoding="utf-8"
    )
    (tmp_path / "intervals.yaml").write_text("class_defaults: 1.3\nknown: []\n", encoding="utf-8")
    write_profiles(tmp_path, pooled, near, own)
    write_profiles(tmp_path, pooled, near, own)
    write_intervals(tmp_path, {"known": (1.0, 0.2)}, {"nanotron": (None, 0.1)})
    default = load_document((tmp_path / "default.yaml").read_bytes())
    stack = load_document((tmp_path / "nanotron.yaml").read_bytes())
    widths = load_document((tmp_path / "intervals.yaml").read_bytes())

    assert {key for key, entry in default["efficiency"].items() if entry.get("fitted")} == {*NAMES}
    assert stack["runs"] == {"tied": True, "logit_bytes": 4.0}
    assert set(stack["efficiency"]) <= {*NAMES}
    assert widths == {
        "class_defaults": 1.3,
        "known": [1.0, 0.2],
        "stacks": {"nanotron": [None, 0.1]},
    }


@pytest.fixture(scope="module")
def two_architectures(known: Sample) -> list[Prepared]:
    """The same runs on two architectures, of which the second has products a tenth slower."""
    other = [_on_architecture(case, "other") for case in known.cases]
    slower = replace(BEFORE, kernels=(("other", KernelShares(gemm=0.9)),))
    return [replace(case, step_s=step_seconds(case, slower)) for case in (*known.cases, *other)]


def _on_architecture(prepared: Prepared, name: str) -> Prepared:
    cluster = prepared.problem.cluster
    pools = tuple(
        replace(pool, chip=replace(pool.chip, architecture=name)) for pool in cluster.pools
    )
    problem = replace(prepared.problem, cluster=replace(cluster, pools=pools))
    return replace(prepared, problem=problem)


def test_kernels_of_an_architecture_slow_its_chips_alone(
    known: Sample, two_architectures: list[Prepared]
) -> None:
    count = len(known.cases)
    before = np.array([step_seconds(case, BEFORE) for case in two_architectures])
    after = np.array([case.step_s for case in two_architectures])

    assert after[:count] == pytest.approx(before[:count])
    assert (after[count:] > before[count:]).all()


def test_the_fit_tells_architectures_apart(two_architectures: list[Prepared]) -> None:
    linear = linearised(two_architectures, BEFORE, PARAMETERS)
    wide = widened(linear, two_architectures)
    weighing = own_weighing(two_architectures)
    fitted = solve([(wide.linear, weighing)], wide.start(linear.x0), wide.parameters)
    slow, fast = (fitted.efficiency.shares_on(name) for name in ("other", "ampere"))

    assert slow.gemm < 0.99
    assert fast.gemm > 1.0
    assert len(wide.parameters) == len(PARAMETERS) + 2 * len(SPREADS)


def test_one_architecture_needs_no_shares(known: Sample) -> None:
    linear = linearised(known.cases, BEFORE, PARAMETERS)

    assert widened(linear, known.cases).parameters == PARAMETERS


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
