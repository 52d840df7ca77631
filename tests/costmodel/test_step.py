"""Laws of the evaluator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.layout.values import Layout, Pipeline, StageOption
from costmodel.stage.costs import stage_table
from costmodel.step import Evaluator, evaluate
from tests.costmodel.cases import even_layout, pipeline, problem

OPTIONS = [
    StageOption(pool=pool, tp=tp, recompute=recompute, zero=zero)
    for pool in ("p", "q")
    for tp in (1, 2, 4)
    for recompute in ("none", "full")
    for zero in (0, 1, 3)
]
CASE = problem()
EVALUATOR = Evaluator.of(CASE, OPTIONS)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """One or two pipelines of one to four stages with any cuts and options."""
    pipelines: list[Pipeline] = []
    for _ in range(draw(st.integers(1, 2))):
        size = draw(st.integers(1, 4))
        inner = st.integers(1, 31)
        chosen = draw(st.lists(inner, min_size=size - 1, max_size=size - 1, unique=True))
        cuts = [0, *sorted(chosen), 32]
        options = draw(st.lists(st.sampled_from(OPTIONS), min_size=size, max_size=size))
        pipelines.append(pipeline(options, cuts, draw(st.integers(1, 12)), draw(st.integers(1, 3))))
    return Layout(pipelines=tuple(pipelines))


@given(layouts())
def test_the_breakdown_sums_to_the_step(layout: Layout) -> None:
    got = EVALUATOR.evaluate(layout)
    assert sum(got.breakdown.values()) == pytest.approx(got.step_time_s, rel=1e-12)
    assert all(value >= -1e-9 for value in got.breakdown.values())


@given(layouts())
def test_memory_terms_sum_to_the_peak(layout: Layout) -> None:
    for stage in (s for p in EVALUATOR.evaluate(layout).stages for s in p):
        m = stage.memory
        parts = (m.weights, m.gradients, m.optimizer, m.activations, m.transient, m.fixed)
        assert m.peak == pytest.approx(sum(parts), rel=1e-12)
        assert all(part >= 0 for part in parts)


@given(layouts())
def test_the_order_of_pipelines_does_not_matter(layout: Layout) -> None:
    turned = Layout(pipelines=tuple(reversed(layout.pipelines)))
    assert EVALUATOR.evaluate(turned).step_time_s == pytest.approx(
        EVALUATOR.evaluate(layout).step_time_s, rel=1e-12
    )


@given(layouts())
def test_a_table_of_many_options_equals_a_table_of_the_used_ones(layout: Layout) -> None:
    assert evaluate(CASE, layout).step_time_s == EVALUATOR.evaluate(layout).step_time_s


def test_one_option_is_a_batch_of_one() -> None:
    whole = EVALUATOR.table
    for row, option in enumerate(OPTIONS):
        alone = stage_table(CASE.model, CASE.cluster, CASE.job, [option])
        assert np.array_equal(alone.layers.forward_s[0], whole.layers.forward_s[row])
        assert np.array_equal(alone.transient_bytes[0], whole.transient_bytes[row])


def test_equal_stages_take_micro_batches_plus_stages_less_one_rounds() -> None:
    """``(m + p - 1) U`` for equal stages (Narayanan et al., arXiv 2104.04473, section 2.2.1)."""
    layout = even_layout(StageOption(pool="p", tp=2), 4, 32)
    stages = EVALUATOR.evaluate(layout).stages[0]
    slowest = max(s.time.forward_s + s.time.backward_s for s in stages)
    fastest = min(s.time.forward_s + s.time.backward_s for s in stages)
    hops = 2 * 3 * 35 * 1e-3
    assert 35 * fastest <= stages[0].time.end_s <= 35 * slowest + hops


def test_recompute_costs_one_more_forward() -> None:
    plain, again = (
        EVALUATOR.evaluate(even_layout(StageOption(pool="p", tp=2, recompute=mode), 4, 32))
        for mode in ("none", "full")
    )
    a, b = plain.stages[0][1].time, again.stages[0][1].time
    assert b.backward_s - a.backward_s == pytest.approx(a.forward_s)
    assert again.mfu < plain.mfu


def test_gradients_over_ethernet_cost_more_than_over_the_fabric() -> None:
    option = {name: StageOption(pool=name, tp=4, zero=1) for name in ("p", "q")}
    near = Layout(pipelines=(pipeline([option["p"]] * 2, [0, 16, 32], 8, count=2),))
    far = Layout(
        pipelines=tuple(pipeline([option[name]] * 2, [0, 16, 32], 8) for name in ("p", "q"))
    )
    assert EVALUATOR.evaluate(far).step_time_s > 1.2 * EVALUATOR.evaluate(near).step_time_s


def test_a_tied_embedding_costs_a_copy_and_its_reduction() -> None:
    """The copy counts for memory on the last stage, and once when one stage holds both ends."""
    case = problem("qwen2.5-0.5b")
    layers = case.model.num_layers
    option = StageOption(pool="p")
    one = evaluate(case, Layout(pipelines=(pipeline([option], [0, layers], 32),)))
    two = evaluate(case, Layout(pipelines=(pipeline([option] * 2, [0, layers - 1, layers], 32),)))
    table = 151936 * 896
    single = one.stages[0][0].memory.weights
    both = sum(s.memory.weights for s in two.stages[0])
    assert both - single == pytest.approx(2 * table, rel=0.01)


def test_zero_2_scatters_gradients_in_every_backward_and_zero_3_gathers_weights_too() -> None:
    """ZeRO-2 saves gradient bytes for traffic in each micro-batch, ZeRO-3 weights for more."""
    times: list[float] = []
    weights: list[float] = []
    gradients: list[float] = []
    for zero in (1, 2, 3):
        layout = even_layout(StageOption(pool="p", tp=2, zero=zero), 2, 8, count=4)
        got = evaluate(CASE, layout)
        times.append(got.step_time_s)
        weights.append(got.stages[0][0].memory.weights)
        gradients.append(got.stages[0][0].memory.gradients)
    assert times == sorted(set(times))
    assert gradients[0] == pytest.approx(4 * gradients[1]) == pytest.approx(4 * gradients[2])
    assert weights[0] == weights[1] == pytest.approx(4 * weights[2])
