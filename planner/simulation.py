"""One pipeline of a plan, pass by pass: what each stage does with the step."""

from dataclasses import asdict, dataclass
from typing import Any

from costmodel.errors import InputError
from costmodel.evaluation import Evaluation, StageEvaluation
from costmodel.pipeline_run import PipelineRun
from costmodel.pipeline_time import hidden_seconds
from costmodel.step import evaluator_for
from planner.values import Plan

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageUse:
    """Seconds of the step on one stage; all but ``finish_s`` sum to it.

    tp_s, cp_s, ep_s: exposed communication in its passes. weights_s: what ZeRO 2 and 3 move for
    every micro-batch. idle_s: before its last pass ends; wait_s: after it, for stages that share
    its layers.
    """

    compute_s: float
    tp_s: float
    cp_s: float
    ep_s: float
    weights_s: float
    idle_s: float
    wait_s: float
    sync_s: float
    optimizer_s: float
    finish_s: float


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Simulation:
    """Pipeline ``pipeline`` of a plan with every pass timed; uses: its stages."""

    plan: Plan
    evaluation: Evaluation
    pipeline: int
    run: PipelineRun
    uses: tuple[StageUse, ...]

    @property
    def stages(self) -> tuple[StageEvaluation, ...]:
        """The pipeline's stages as predicted."""
        return self.evaluation.stages[self.pipeline]

    def document(self) -> Document:
        """The table as plain data (schema ``haplan.simulation/v1``)."""
        step_s = self.evaluation.step_time_s
        return {
            "schema": "haplan.simulation/v1",
            "plan": self.plan.id,
            "pipeline": self.pipeline,
            "schedule": asdict(self.evaluation.layout.schedule),
            "microbatches": self.run.seconds.microbatches,
            "step_time_s": step_s,
            "stages": [
                {
                    "stage": i,
                    "pool": stage.stage.option.pool,
                    "layers": stage.stage.num_layers,
                    **asdict(use),
                    "busy": (use.finish_s - use.idle_s - use.wait_s) / step_s,
                    "peak_bytes": stage.memory.peak,
                }
                for i, (stage, use) in enumerate(zip(self.stages, self.uses, strict=True))
            ],
        }


def simulate(plan: Plan, pipeline: int | None = None) -> Simulation:
    """Times every pass of a pipeline, by default of the one that ends the step.

    Raises InputError for a plan without a layout, or without that pipeline.
    """
    if plan.layout is None or plan.evaluation is None:
        raise InputError.of(
            field="/status",
            value=plan.status,
            rule="must be a plan with a layout to be simulated",
            fix="plan again with what the plan says is missing",
        )
    d = plan.evaluation.last[0] if pipeline is None else pipeline
    count = len(plan.layout.pipelines)
    if not 0 <= d < count:
        rule = f"must be one of the plan's {count} pipelines, from 0"
        fix = f"use 0 to {count - 1}" if count > 1 else "use 0"
        raise InputError.of(field="/pipeline", value=d, rule=rule, fix=fix)
    run = evaluator_for(plan.problem, plan.layout).run(plan.layout, d)
    hidden = hidden_seconds(run.seconds)
    stages = plan.evaluation.stages[d]
    uses = tuple(_use(run, stage, float(hidden[i])) for i, stage in enumerate(stages))
    return Simulation(plan=plan, evaluation=plan.evaluation, pipeline=d, run=run, uses=uses)


def _use(run: PipelineRun, stage: StageEvaluation, hidden_s: float) -> StageUse:
    time, visits = stage.time, run.seconds.visits
    tp, cp, ep = (visits * part for part in (time.tp_s, time.cp_s, time.ep_s))
    compute = visits * (time.forward_s + time.backward_s) - tp - cp - ep
    weights = visits * time.sharded_weights_s
    busy = compute + tp + cp + ep - hidden_s + weights
    return StageUse(
        compute_s=compute,
        tp_s=tp,
        cp_s=cp,
        ep_s=ep - hidden_s,
        weights_s=weights,
        idle_s=time.end_s - busy,
        wait_s=time.wait_s,
        sync_s=time.sync_s,
        optimizer_s=time.optimizer_s,
        finish_s=time.finish_s,
    )
