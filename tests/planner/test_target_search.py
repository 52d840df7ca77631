"""Searches of targets: legal layouts, no better than an enumeration, compared with each other."""

from dataclasses import replace
from functools import cache

import pytest

from costmodel.hardware.read import load_cluster
from costmodel.layout.rules import violations
from costmodel.layout.values import Layout
from costmodel.model.read import load_model
from costmodel.step import Evaluator
from planner import Job, Plan, plan
from planner.meshes import in_rank_order, meshes
from planner.node_values import with_more
from planner.pricing import clipped, priced
from planner.space import clip
from planner.subclusters import SIGNIFICANT_BITS, rounded
from planner.target_search import outcome
from planner.targets.registry import target_called, targets
from planner.watch import Watch
from tests.planner.enumeration import layouts
from tests.planner.test_exact import is_small
from tests.planner.tiny import tiny_problem

JOB = Job(global_batch_size=256, sequence_length=4096)
SEARCHED = ("megatron@0.16", "flagscale@0.9", "deepspeed@0.18", "torchtitan@0.2")


@cache
def launchable() -> Plan:
    return plan(load_model("llama3-8b"), load_cluster("hybrid-64"), JOB, time_limit_s=120.0)


def test_the_launchable_plan_is_executed_by_its_target() -> None:
    found = launchable()
    assert found.layout is not None
    target = targets()[found.target]

    assert target.maintained
    assert target.violations(found.problem, found.layout) == ()
    assert violations(found.problem, found.layout) == ()


def test_every_other_target_has_its_price() -> None:
    found = launchable()
    times = {a.target: a.step_time_s for a in found.alternatives}

    assert "any" in times
    assert found.target not in times
    assert min(times.values()) == times["any"]
    assert all(
        a.relative == pytest.approx(a.step_time_s / found.step_time_s - 1)
        for a in found.alternatives
    )
    assert all(t >= found.step_time_s for label, t in times.items() if label != "any")


@pytest.mark.parametrize("label", SEARCHED)
def test_a_target_alone_gives_what_launchable_says_of_it(label: str) -> None:
    known = {a.target: a.step_time_s for a in launchable().alternatives}
    known[launchable().target] = launchable().step_time_s

    found = plan(load_model("llama3-8b"), load_cluster("hybrid-64"), JOB, target=label)

    assert found.target == label
    assert found.step_time_s == pytest.approx(known[label])
    assert found.layout is not None
    assert targets()[label].violations(found.problem, found.layout) == ()


def test_a_target_that_keeps_nothing_says_which_rules() -> None:
    found = plan(load_model("llama3-8b"), load_cluster("hybrid-64"), JOB, target="mindspeed")

    assert found.status == "infeasible"
    assert found.shortfall is not None
    assert "mindspeed.vendor" in found.shortfall.constraint


@cache
def small_seeds() -> tuple[int, ...]:
    return tuple(seed for seed in range(60) if is_small(*tiny_problem(seed)))[:20]


def exhaustive(seed: int, label: str) -> float:
    problem, space = tiny_problem(seed)
    target = target_called(label)
    evaluator = Evaluator.of(problem, space.options)

    def seconds(layout: Layout) -> float:
        evaluation = evaluator.evaluate(layout)
        return evaluation.step_time_s if evaluation.fits else float("inf")

    legal = (x for x in layouts(problem, space) if not target.violations(problem, x))
    return min((seconds(layout) for layout in legal), default=float("inf"))


@pytest.mark.parametrize("label", ["megatron@0.16", "flagscale@0.9"])
def test_searches_come_close_to_an_enumeration_and_never_below(label: str) -> None:
    ratios: list[float] = []
    for seed in small_seeds():
        problem, space = tiny_problem(seed)
        everything = priced(problem, replace(space, target="any"))
        found = outcome(problem, everything, target_called(label), Watch(limit_s=60.0))
        best_s = exhaustive(seed, label)
        assert found.step_time_s >= best_s * (1 - 1e-9)
        if best_s < float("inf"):
            ratios.append(found.step_time_s / best_s)

    assert len(ratios) >= 5
    assert sorted(ratios)[len(ratios) // 2] < 1.01


def test_a_cut_table_prices_as_the_whole_one() -> None:
    problem, space = tiny_problem(3)
    everything = priced(problem, replace(space, target="any"))
    target = target_called("megatron")
    part = clipped(everything, problem, clip(everything.space, problem, target), target)
    alone = priced(problem, part.space)
    assert part.table.options

    for name in ("forward_s", "activation_bytes"):
        one, other = getattr(part.table.layers, name), getattr(alone.table.layers, name)
        assert one.tolist() == other.tolist()


def test_groups_in_rank_order_fill_the_stages_of_all_copies() -> None:
    """Five groups of the first pool and three of the second are two copies of four stages."""
    kinds = dict(in_rank_order((7, 9), (5, 3), 2))

    assert kinds == {(7, 7, 7, 9): 1, (7, 7, 9, 9): 1}


def test_meshes_use_no_chip_twice_and_the_whole_batch() -> None:
    problem, space = tiny_problem(4)
    instance = priced(problem, replace(space, target="any"))
    orders = [(0,)] if len(space.pools) == 1 else [(0,), (1,), (0, 1)]
    found = list(meshes(instance, orders))

    assert found
    for mesh in found:
        samples = int(instance.table.samples[mesh.rows[0]])
        assert mesh.copies * mesh.microbatches * samples == instance.batch
        assert sum(count for _, count in mesh.kinds) == mesh.copies
        used = sum(
            count * sum(int(instance.table.num_chips[row]) for row in stages)
            for stages, count in mesh.kinds
        )
        assert used <= sum(instance.chips)


@pytest.mark.parametrize(
    ("schedule", "space", "gap"),
    [("1f1b", "megatron/1", 0.02), (None, "interleaved/1", 0.05)],
    ids=["1f1b", "auto"],
)
def test_a_family_proves_more_than_the_bound_of_everything(
    schedule: str | None, space: str, gap: float
) -> None:
    found = plan(
        load_model("llama3-70b"),
        load_cluster("hybrid-64"),
        replace(JOB, schedule=schedule),
        target="megatron",
        time_limit_s=60,
    )
    assert found.bound is not None
    assert found.layout is not None

    assert found.bound.step_time_s <= found.step_time_s
    assert len({pipeline.stages for pipeline in found.layout.pipelines}) == 1
    assert space in found.bound.method
    assert found.bound.gap < gap


def test_a_family_bounds_only_its_own_layouts() -> None:
    """llama3-8b runs fastest with stages that both pools share, which the family leaves out."""
    found = plan(load_model("llama3-8b"), load_cluster("hybrid-64"), JOB, target="megatron")
    assert found.bound is not None
    assert found.layout is not None

    alike = len({pipeline.stages for pipeline in found.layout.pipelines}) == 1
    assert alike or found.bound.method in ("work", "ramp")
    assert found.bound.step_time_s <= found.step_time_s


def test_odd_numbers_of_chips_lose_their_last_bits() -> None:
    assert [rounded(n) for n in (8, 15, 17, 1024, 1032, 10240, 15360)] == [
        *(8, 15, 16, 1024, 1024, 10240, 15360)
    ]
    assert all(rounded(n) > n * (1 - 2.0 ** (1 - SIGNIFICANT_BITS)) for n in range(1, 3000))


def test_a_node_more_that_spoils_the_divisors_does_not_slow_the_plan() -> None:
    model, now = load_model("llama3-8b"), load_cluster("a100-v100-256")
    job = Job(global_batch_size=512, sequence_length=4096, precision="fp16")
    before_s = plan(model, now, job, target="any", time_limit_s=60.0).step_time_s
    more = with_more(now, now.pools[0], 1)

    assert plan(model, more, job, target="any", time_limit_s=60.0).step_time_s <= before_s


def test_a_layout_that_fits_is_found_behind_many_that_do_not() -> None:
    """671 billion parameters on 256 chips of 40 and 32 GB."""
    job = Job(global_batch_size=1024, sequence_length=4096, precision="fp16")
    model, cluster = load_model("deepseek-v3"), load_cluster("a100-v100-256")

    assert plan(model, cluster, job, target="any", time_limit_s=60.0).layout is not None
