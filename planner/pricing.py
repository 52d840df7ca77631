"""Prices a space: one table of all options and the evaluator that scores whole layouts."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from costmodel.efficiency import Efficiency
from costmodel.layout.values import Layout, StageOption
from costmodel.network.transfers import transfer_seconds
from costmodel.step import Evaluator, Problem
from planner.instance import Instance, Score
from planner.space import Space, restrict
from planner.table_rows import rows_of
from planner.targets.registry import target_called
from planner.targets.target import Target


def priced(problem: Problem, space: Space) -> Instance:
    """The search problem of a space. Raises UnknownNumberError when a chip lacks a number."""
    evaluator = Evaluator.of(problem, space.options)
    pools = [problem.cluster.pool(name) for name in space.pools]
    islands = problem.cluster.islands

    def transfer(sender: StageOption, receiver: StageOption) -> tuple[float, float]:
        received = float(evaluator.table.boundary_bytes[evaluator.rows[receiver]])
        sent = received * receiver.num_chips / sender.num_chips
        seconds = transfer_seconds(
            problem.cluster, sender, receiver, received, sent, problem.efficiency
        )
        return seconds, seconds

    def score(layout: Layout) -> Score:
        if not zero_agrees(layout):
            return ILLEGAL
        evaluation = evaluator.evaluate(layout)
        stages = [stage for pipeline in evaluation.stages for stage in pipeline]
        return Score(
            step_time_s=evaluation.step_time_s if evaluation.fits else float("inf"),
            pipeline_s=max(stage.time.end_s for stage in stages),
            missing_bytes=evaluation.missing_bytes,
        )

    instance = Instance(
        space=space,
        job=problem.job,
        table=evaluator.table,
        chips=tuple(pool.num_chips for pool in pools),
        islands=tuple(islands.index(pool.island) for pool in pools),
        transfer=transfer,
        evaluate=score,
        mtp=len(problem.model.mtp),
        floor=_floor(problem.efficiency),
        trained_share=problem.efficiency.trained_share,
    )
    return clipped(instance, problem, space, target_called(space.target))


def clipped(instance: Instance, problem: Problem, space: Space, target: Target) -> Instance:
    """The instance with the options of a smaller space; the target judges every layout.

    Prices are those of ``instance``: its table is cut, not made anew. Where nothing is cut it is
    the same object, so that what is known of it stays known.
    """
    if space == instance.space and not target.rules:
        return instance

    def score(layout: Layout) -> Score:
        allowed = target.allows(problem, layout)
        return instance.evaluate(layout) if allowed else ILLEGAL

    evaluate = score if target.rules else instance.evaluate
    part = replace(with_options(instance, space.options), space=space)
    return replace(part, evaluate=evaluate, allows=partial(target.allows, problem))


def with_options(instance: Instance, options: Sequence[StageOption]) -> Instance:
    """The instance with some of its options; the same evaluator."""
    rows = {option: row for row, option in enumerate(instance.table.options)}
    return replace(
        instance,
        space=restrict(instance.space, tuple(options)),
        table=rows_of(instance.table, [rows[option] for option in options]),
    )


ILLEGAL = Score(step_time_s=float("inf"), pipeline_s=float("inf"), missing_bytes=float("inf"))


def zero_agrees(layout: Layout) -> bool:
    """Whether stages that share a layer have the same ZeRO stage (a rule of layouts)."""
    by_layer = {
        tuple(s.option.zero for s in pipeline.stages for _ in s.layers)
        for pipeline in layout.pipelines
    }
    return len(by_layer) == 1


def _floor(efficiency: Efficiency) -> float:
    """Seconds that every layout pays: the fixed cost of a step."""
    return efficiency.step_overhead_s
