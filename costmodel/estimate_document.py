"""An estimate as plain data: every memory and time term of every stage."""

from collections.abc import Sequence

from costmodel.estimation import Estimate
from costmodel.evaluation import Evaluation, StageEvaluation, StageMemory, StageTime
from costmodel.hardware.assumptions import CLASS_DEFAULT
from costmodel.layout.fitting import Change
from costmodel.layout.values import NO_OFFLOAD
from costmodel.software.intervals import interval

Document = dict[str, object]

SCHEMA = "haplan.estimate/v1"
MEMORY_TERMS = ("weights", "gradients", "optimizer", "activations", "transient", "fixed")
"""Bytes of one chip; they sum to the peak."""
MICROBATCH_TERMS = ("forward_s", "backward_s", "tp_s", "cp_s", "ep_s", "sharded_weights_s")
"""Seconds of one micro-batch; tp, cp and ep are parts of forward and backward."""
STEP_TERMS = ("end_s", "wait_s", "sync_s", "optimizer_s", "finish_s")
"""Seconds of one step; end, wait, sync and optimizer sum to finish."""
DEGREES = ("tp", "sequence_parallel", "cp", "ep", "etp", "replicas", "micro_batch_size", "zero")


def estimate_document(estimate: Estimate) -> Document:
    """The whole estimate."""
    evaluation, problem = estimate.evaluation, estimate.problem
    layout = evaluation.layout
    return {
        "schema": SCHEMA,
        "model": problem.model.name,
        "cluster": problem.cluster.name,
        "fits": estimate.fits,
        "missing_bytes": estimate.missing_bytes,
        "changes": [change_document(change) for change in estimate.changes],
        "prediction": prediction_document(evaluation, estimate.assumptions),
        "schedule": {
            "kind": layout.schedule.kind,
            "virtual_stages": layout.schedule.virtual_stages,
        },
        "pipelines": [
            {
                "count": pipeline.count,
                "microbatches": pipeline.microbatches,
                "stages": [stage_document(stage) for stage in stages],
            }
            for pipeline, stages in zip(layout.pipelines, evaluation.stages, strict=True)
        ],
        "stages": [
            {"pipeline": d, "count": layout.pipelines[d].count, "stage": i, **stage_document(stage)}
            for d, stages in enumerate(evaluation.stages)
            for i, stage in enumerate(stages)
        ],
        "warnings": list(estimate.warnings),
        "assumptions": list(estimate.assumptions),
    }


def prediction_document(evaluation: Evaluation, assumptions: Sequence[str]) -> Document:
    """The step as a whole; the breakdown sums to the step time.

    The interval is that of a training stack without a profile of its own, wider where the
    assumptions name numbers that nobody measured.
    """
    defaults = any(CLASS_DEFAULT in assumption for assumption in assumptions)
    return {
        "step_time_s": evaluation.step_time_s,
        "interval_s": list(interval(evaluation, class_defaults=defaults)),
        "tokens_per_s": evaluation.tokens_per_s,
        "tokens_per_s_per_chip": evaluation.tokens_per_s / evaluation.num_chips,
        "tflops_per_chip": evaluation.tflops_per_chip,
        "mfu": evaluation.mfu,
        "breakdown": dict(evaluation.breakdown),
    }


def stage_document(evaluated: StageEvaluation) -> Document:
    """One stage of an estimate: as in a plan, and every term of its time."""
    document = plan_stage_document(evaluated)
    missing: Document = {"missing": evaluated.memory.missing}
    return document | {
        "memory": memory_document(evaluated.memory) | missing,
        "time": time_document(evaluated.time),
    }


def plan_stage_document(evaluated: StageEvaluation) -> Document:
    """One stage as a plan holds it: what it is, its times and its memory."""
    stage, option = evaluated.stage, evaluated.stage.option
    return {
        "pool": option.pool,
        "chunks": [list(chunk) for chunk in stage.chunks],
        "embedding": stage.embedding,
        "head": stage.head,
        "mtp": stage.mtp,
        **{name: getattr(option, name) for name in DEGREES},
        "recompute": {"mode": option.recompute},
        **({"offload": option.offload} if option.offload != NO_OFFLOAD else {}),
        "forward_s": evaluated.time.forward_s,
        "backward_s": evaluated.time.backward_s,
        "in_flight": evaluated.in_flight,
        "memory": memory_document(evaluated.memory),
    }


def memory_document(memory: StageMemory) -> Document:
    """Bytes of one chip: the terms, their sum ``peak`` and what there is."""
    terms: Document = {term: getattr(memory, term) for term in MEMORY_TERMS}
    return terms | {"peak": memory.peak, "capacity": memory.capacity}


def time_document(time: StageTime) -> Document:
    """Seconds of one micro-batch, then of the step."""
    return {term: getattr(time, term) for term in MICROBATCH_TERMS + STEP_TERMS}


def change_document(change: Change) -> Document:
    """One change that would help."""
    return {
        "change": change.text,
        "fits": change.fits,
        "missing_bytes": change.missing_bytes,
        "step_time_s": change.step_time_s,
    }
