"""Holmes's published setting: predictions near its figure, and a plan no slower than its rule."""

import pytest

from benchmarks.baselines import PUBLISHED, holmes_problem, tflops, two_stages
from costmodel.step import evaluate
from planner import plan
from planner.wishes import Wishes

MIXED = (("ib", "roce", 16), ("roce", "ib", 16))
APART = (("ib", "roce", 32),)


def test_predictions_are_near_the_published_figure() -> None:
    """Errors today: -10 % and +7 %; the figure itself was read to 4 %."""
    naive = evaluate(holmes_problem(over_ethernet=True), two_stages(MIXED)).step_time_s
    rule = evaluate(holmes_problem(), two_stages(APART)).step_time_s

    assert tflops(naive) == pytest.approx(PUBLISHED["naive rank order"], rel=0.25)
    assert tflops(rule) == pytest.approx(PUBLISHED["Holmes's rule"], rel=0.15)
    assert rule < naive


def test_the_plan_is_no_slower_than_holmes_s_rule() -> None:
    problem = holmes_problem()
    found = plan(
        problem.model,
        problem.cluster,
        problem.job,
        time_limit_s=60.0,
        wishes=Wishes(every_baseline=True, given=two_stages(APART)),
    )
    times = {b.name: b.step_time_s for b in found.baselines}

    for name in ("holmes", "your layout"):
        seconds = times[name]
        assert seconds is not None
        assert found.step_time_s <= seconds
