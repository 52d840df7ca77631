"""What `haplan estimate` says about one layout: every memory and time term of every stage."""

from typing import Any

from costmodel.evaluation import Evaluation, StageEvaluation, StageMemory, StageTime
from service.inputs import Inputs

Document = dict[str, Any]

MEMORY_TERMS = ("weights", "gradients", "optimizer", "activations", "transient", "fixed")
TIME_TERMS = (
    "forward_s", "backward_s", "tp_s", "cp_s", "ep_s", "sharded_weights_s",
    "end_s", "wait_s", "sync_s", "optimizer_s", "finish_s",
)  # fmt: skip


def estimate_document(inputs: Inputs, evaluation: Evaluation) -> Document:
    """The whole answer."""
    return {
        "schema": "haplan.estimate/v1",
        "model": inputs.model.name,
        "cluster": inputs.cluster.name,
        "fits": evaluation.fits,
        "missing_bytes": evaluation.missing_bytes,
        "prediction": prediction_document(evaluation),
        "stages": [
            stage_document(evaluation, pipeline, number, stage)
            for pipeline, stages in enumerate(evaluation.stages)
            for number, stage in enumerate(stages)
        ],
        "assumptions": [*inputs.model.assumptions, *inputs.cluster.assumptions],
    }


def prediction_document(evaluation: Evaluation) -> Document:
    """The step as a whole; the breakdown sums to the step time."""
    return {
        "step_time_s": evaluation.step_time_s,
        "tokens_per_s": evaluation.tokens_per_s,
        "tokens_per_s_per_chip": evaluation.tokens_per_s / evaluation.num_chips,
        "tflops_per_chip": evaluation.tflops_per_chip,
        "mfu": evaluation.mfu,
        "breakdown": dict(evaluation.breakdown),
    }


def stage_document(
    evaluation: Evaluation, pipeline: int, number: int, stage: StageEvaluation
) -> Document:
    """One stage: what it is, its memory, its times."""
    option = stage.stage.option
    return {
        "pipeline": pipeline,
        "count": evaluation.layout.pipelines[pipeline].count,
        "stage": number,
        "pool": option.pool,
        "chunks": [list(chunk) for chunk in stage.stage.chunks],
        "embedding": stage.stage.embedding,
        "head": stage.stage.head,
        "mtp": stage.stage.mtp,
        "tp": option.tp,
        "cp": option.cp,
        "ep": option.ep,
        "etp": option.etp,
        "replicas": option.replicas,
        "micro_batch_size": option.micro_batch_size,
        "zero": option.zero,
        "recompute": {"mode": option.recompute},
        "in_flight": stage.in_flight,
        "memory": memory_document(stage.memory),
        "time": time_document(stage.time),
    }


def memory_document(memory: StageMemory) -> Document:
    """The terms sum to `peak`."""
    terms = {term: getattr(memory, term) for term in MEMORY_TERMS}
    return terms | {"peak": memory.peak, "capacity": memory.capacity, "missing": memory.missing}


def time_document(time: StageTime) -> Document:
    """Times of one micro-batch, then of the step."""
    return {term: getattr(time, term) for term in TIME_TERMS}
