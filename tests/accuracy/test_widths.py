"""Widths of intervals: conformal quantiles, by regime and stack."""

from math import exp

import numpy as np
import pytest

from costmodel.calibration.widths import OWN_ROWS, Miss, own_widths, pooled_widths, quantile
from costmodel.software.intervals import REGIME_EDGES, regime


def misses(stack: str, values: list[float], mfu: float = 0.5) -> list[Miss]:
    return [Miss(stack=stack, mfu=mfu, log_ratio=value) for value in values]


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
    widths = pooled_widths([*small, *misses("large", [1.0] * 100)])

    assert widths[regime(0.5)] == pytest.approx(exp(0.1) - 1.0)
    assert len(widths) == len(REGIME_EDGES) + 1


def test_only_enough_runs_make_a_width_of_ones_own() -> None:
    few, many = misses("few", [0.1] * (OWN_ROWS - 1)), misses("many", [0.1] * OWN_ROWS)

    assert own_widths([*few, *many]) == {
        "many": (None, None, None, None, pytest.approx(exp(0.1) - 1.0))
    }


def test_regimes_rise_with_utilisation() -> None:
    assert [regime(mfu) for mfu in (0.0, *REGIME_EDGES)] == [0, 1, 2, 3, 4]
