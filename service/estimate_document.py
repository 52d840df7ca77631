"""What `haplan estimate` says about one layout: every memory and time term of every stage."""

from dataclasses import asdict
from typing import Any

from costmodel.assumptions import assumptions_of
from costmodel.evaluation import Evaluation, StageEvaluation
from costmodel.layout.rules import warnings
from costmodel.problem import Problem
from planner.document import prediction_document
from planner.document import stage_document as plan_stage

Document = dict[str, Any]


def estimate_document(problem: Problem, evaluation: Evaluation) -> Document:
    """The whole answer."""
    return {
        "schema": "haplan.estimate/v1",
        "model": problem.model.name,
        "cluster": problem.cluster.name,
        "fits": evaluation.fits,
        "missing_bytes": evaluation.missing_bytes,
        "prediction": prediction_document(evaluation),
        "stages": [
            stage_document(evaluation, pipeline, number, stage)
            for pipeline, stages in enumerate(evaluation.stages)
            for number, stage in enumerate(stages)
        ],
        "warnings": list(warnings(problem, evaluation.layout)),
        "assumptions": list(assumptions_of(problem, evaluation.layout)),
    }


def stage_document(
    evaluation: Evaluation, pipeline: int, number: int, stage: StageEvaluation
) -> Document:
    """One stage as in a plan, with its place in the layout and every time term.

    Times up to `sharded_weights_s` are of one micro-batch, the others of the step.
    """
    document = plan_stage(stage, [])
    memory = document["memory"] | {"missing": stage.memory.missing}
    return {
        "pipeline": pipeline,
        "count": evaluation.layout.pipelines[pipeline].count,
        "stage": number,
        **document,
        "memory": memory,
        "time": asdict(stage.time),
    }
