"""Smaller parts of the planner, each against a simple second opinion."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.step import Evaluator
from planner.bound import chip_seconds, work_bound
from planner.instance import (
    Entry,
    Instance,
    Template,
    draft_chips,
    draft_samples,
    fits_roughly,
    largest_microbatches,
    layout_of,
    makespan,
    pipelines_of,
    template_samples,
)
from planner.mixes import column, mix, trim
from planner.placement import place
from planner.pricing import priced
from tests.planner.enumeration import shapes
from tests.planner.tiny import chip, pool, tiny_cluster, tiny_problem

SEEDS = range(30)


def some_templates(instance: Instance, seed: int, count: int) -> list[Template]:
    """Random templates of the problem's space, through the independent enumeration."""
    problem, space = tiny_problem(seed)
    rows = {option: row for row, option in enumerate(instance.table.options)}
    found = [
        Template(
            rows=tuple(rows[o] for o, _, _ in shape), cuts=(0, *(stop for _, _, stop in shape))
        )
        for shape in shapes(problem, space)
    ]
    return Random(seed).sample(found, min(count, len(found)))


@pytest.mark.parametrize("seed", SEEDS)
def test_simulated_pipeline_time_is_the_evaluators(seed: int) -> None:
    problem, space = tiny_problem(seed)
    instance = priced(problem, space)
    evaluator = Evaluator.of(problem, space.options)
    for template in some_templates(instance, seed, 5):
        plain = all(instance.table.options[row].zero < 2 for row in template.rows)
        layout = layout_of(instance, (Entry(template=template, count=1, microbatches=3),))
        ends = [stage.time.end_s for stage in evaluator.evaluate(layout).stages[0]]

        if plain:
            assert makespan(instance, template, 3) == pytest.approx(max(ends), rel=1e-12)
        assert makespan(instance, template, 3) <= max(ends) * (1 + 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_quick_memory_check_is_exact_for_one_shape(seed: int) -> None:
    problem, space = tiny_problem(seed)
    instance = priced(problem, space)
    evaluator = Evaluator.of(problem, space.options)
    for template in some_templates(instance, seed, 5):
        for count, m in ((1, 1), (2, 4)):
            draft = (Entry(template=template, count=count, microbatches=m),)
            fits = evaluator.evaluate(layout_of(instance, draft)).fits

            assert fits_roughly(instance, draft) == fits


@pytest.mark.parametrize("seed", SEEDS)
def test_largest_microbatches_is_the_last_that_fits(seed: int) -> None:
    instance = priced(*tiny_problem(seed))
    for template in some_templates(instance, seed, 3):
        budget = makespan(instance, template, 5) * 1.01
        m = largest_microbatches(instance, template, budget, 50)

        assert m >= 5
        assert makespan(instance, template, m) <= budget
        assert makespan(instance, template, m + 1) > budget


@pytest.mark.parametrize("seed", SEEDS)
def test_mix_uses_the_whole_batch_within_the_chips(seed: int) -> None:
    instance = priced(*tiny_problem(seed))
    draft = mix(instance, tuple(column(instance, t) for t in some_templates(instance, seed, 12)))
    if draft is None:
        return

    assert draft_samples(instance, draft) == instance.batch
    assert (draft_chips(instance, draft) <= np.array(instance.chips)).all()
    assert pipelines_of(draft) == sum(e.count for e in draft)


def test_trim_takes_from_the_slowest() -> None:
    instance = priced(*tiny_problem(5))
    single = [t for t in some_templates(instance, 5, 20) if template_samples(instance, t) == 1]
    fast, *_, slow = sorted(single, key=lambda t: makespan(instance, t, instance.batch))
    draft = tuple(Entry(template=t, count=1, microbatches=instance.batch) for t in (fast, slow))

    trimmed = trim(instance, draft)

    assert trimmed is not None
    assert draft_samples(instance, trimmed) == instance.batch
    left = {e.template: e.microbatches for e in trimmed}
    assert left.get(fast, 0) >= left.get(slow, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_work_bound_on_one_pool_is_work_over_chips(seed: int) -> None:
    instance = priced(*tiny_problem(seed))
    cost = chip_seconds(instance)
    alone = [instance.batch * cost[k].sum() / n for k, n in enumerate(instance.chips)]
    together = work_bound(instance)

    assert together <= min(alone) * (1 + 1e-9)
    if len(alone) == 1:
        assert together == pytest.approx(alone[0], rel=1e-6)


def layout_with(*groups: tuple[int, int, int]) -> Layout:
    """Pipelines of one stage on pool p: (copies, tp, replicas) each."""
    return Layout(
        pipelines=tuple(
            Pipeline(
                stages=(Stage(option=StageOption(pool="p", tp=tp, replicas=r), chunks=((0, 1),)),),
                microbatches=1,
                count=copies,
            )
            for copies, tp, r in groups
        )
    )


def test_placement_packs_large_groups_first() -> None:
    random = Random(0)
    kind = chip("c", flop_per_s=1e14, memory_bytes=8e10)
    cluster = tiny_cluster(random, 1, 1)
    nodes = pool("p", island="i", nodes=2, chips_per_node=8, kind=kind)
    cluster = type(cluster)(name="one", pools=(nodes,))

    placed = place(cluster, layout_with((3, 1, 1), (1, 8, 1), (1, 4, 1), (1, 1, 1)))

    assert placed is not None
    assert placed[1][0][0] == (0,)
    assert Counter(node for p in placed for s in p for copy in s for node in copy)[1] == 5
    assert place(cluster, layout_with((3, 8, 1))) is None
