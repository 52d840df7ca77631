"""Prices a space: one table of all options and the evaluator that scores whole layouts."""

from costmodel.efficiency import Efficiency
from costmodel.layout.values import Layout, StageOption
from costmodel.network.transfers import transfer_seconds
from costmodel.step import Evaluator, Problem
from planner.instance import Instance, Score
from planner.space import Space
from planner.targets.registry import target_called


def priced(problem: Problem, space: Space) -> Instance:
    """The search problem of a space. Raises UnknownNumberError when a chip lacks a number."""
    evaluator, target = Evaluator.of(problem, space.options), target_called(space.target)
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
        if not zero_agrees(layout) or not target.allows(problem, layout):
            return ILLEGAL
        evaluation = evaluator.evaluate(layout)
        stages = [stage for pipeline in evaluation.stages for stage in pipeline]
        return Score(
            step_time_s=evaluation.step_time_s if evaluation.fits else float("inf"),
            pipeline_s=max(stage.time.end_s for stage in stages),
            missing_bytes=evaluation.missing_bytes,
        )

    return Instance(
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
