"""Widths of intervals: conformal quantiles of scaled misses, by regime and stack."""

from math import exp, log1p

import numpy as np
import pytest

from costmodel.calibration.widths import (
    OWN_ROWS,
    Miss,
    half_widths,
    own_scale,
    own_widths,
    pooled_widths,
    quantile,
    scales,
    scored,
)
from costmodel.software.intervals import REGIME_EDGES, regime


def misses(
    stack: str, values: list[float], mfu: float = 0.5, fold: int | None = None
) -> list[Miss]:
    return [Miss(stack=stack, mfu=mfu, log_ratio=value, fold=fold) for value in values]


def test_a_conformal_quantile_is_a_little_high() -> None:
    assert quantile([float(i) for i in range(1, 20)]) == 18.0
    assert quantile([1.0, 2.0]) == 2.0


def test_a_quantile_covers_runs_to_come() -> None:
    draw = np.random.default_rng(0)
    covered = [draw.random() <= quantile(list(draw.random(30))) for _ in range(4000)]

    assert 0.88 < np.mean(covered) < 0.93


def test_a_stack_with_many_runs_counts_as_one() -> None:
    """Nineteen stacks of one small miss each outweigh another with a hundred large ones."""
    small = [miss for i in range(19) for miss in misses(f"s{i}", [0.1])]
    every = [*small, *misses("large", [1.0] * 100)]

    assert scales(every)[regime(0.5)] == pytest.approx(0.1)
    assert pooled_widths(every)[regime(0.5)] == pytest.approx(exp(0.1) - 1.0)


def test_only_enough_runs_make_a_scale_of_ones_own() -> None:
    assert own_scale(misses("few", [0.1] * (OWN_ROWS - 1)), regime(0.5)) is None
    assert own_scale(misses("many", [0.1] * OWN_ROWS), regime(0.5)) == pytest.approx(0.1)
    few, many = misses("few", [0.1] * (OWN_ROWS - 1)), misses("many", [0.1] * OWN_ROWS)
    assert set(own_widths([*few, *many])) == {"many"}


def test_a_run_has_no_part_in_its_own_interval() -> None:
    """A miss that grows without bound leaves the width of its own interval as it was."""
    folds = [miss for fold in range(4) for miss in misses("a", [0.1, 0.2, 0.3] * 4, fold=fold)]
    others = [miss for i in range(12) for miss in misses(f"s{i}", [0.1, 0.3], fold=0)]
    before = half_widths([*misses("a", [0.1], fold=9), *folds, *others])
    after = half_widths([*misses("a", [5.0], fold=9), *folds, *others])

    assert after[0] == pytest.approx(before[0])


def test_scales_come_from_other_folds_where_they_are_enough() -> None:
    folds = [miss for fold in (0, 1) for miss in misses("a", [0.02] * OWN_ROWS, fold=fold)]
    found = scored([*folds, *misses("b", [0.4] * 5, fold=0)])

    assert {one.scale for one in found if one.miss.stack == "a"} == {0.02}
    assert {one.scale for one in found if one.miss.stack == "b"} == {0.02}


@pytest.mark.parametrize("known", [True, False])
def test_nine_tenths_of_runs_lie_inside(known: bool) -> None:
    draw = np.random.default_rng(1)
    every = [
        Miss(
            stack=f"s{i}",
            mfu=float(draw.random()),
            log_ratio=float(abs(draw.normal(scale=0.05 + 0.02 * i * known))),
            fold=fold if known else None,
        )
        for i in range(12)
        for fold in range(4)
        for _ in range(20)
    ]
    inside = [miss.log_ratio <= log1p(h) for miss, h in zip(every, half_widths(every), strict=True)]

    assert 0.86 < np.mean(inside) < 0.94


def test_regimes_rise_with_utilisation() -> None:
    assert [regime(mfu) for mfu in (0.0, *REGIME_EDGES)] == [0, 1, 2, 3]
