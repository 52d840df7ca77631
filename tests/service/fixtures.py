"""A small true-to-shape plan, so that faces are tested without planning."""

from collections.abc import Callable
from typing import Any

Document = dict[str, Any]

PLAN_ID = "sha256:" + "a" * 64

QUESTION: Document = {
    "model": "llama3-8b",
    "cluster": "hybrid-64",
    "job": {"global_batch_size": 64, "sequence_length": 4096},
}

PREDICTION: Document = {
    "step_time_s": 2.0,
    "interval_s": [1.8, 2.2],
    "tokens_per_s": 131072.0,
    "tokens_per_s_per_chip": 2048.0,
    "tflops_per_chip": 110.0,
    "mfu": 0.35,
    "breakdown": {"compute": 1.5, "tp": 0.2, "bubble": 0.3, "cp": 0.0},
}


def stage(pool: str, start: int, stop: int, **changes: Any) -> Document:
    return {
        "pool": pool,
        "nodes": [],
        "chunks": [[start, stop]],
        "embedding": start == 0,
        "head": stop == 32,
        "mtp": 0,
        "tp": 8,
        "sequence_parallel": True,
        "cp": 1,
        "ep": 1,
        "etp": 1,
        "replicas": 1,
        "micro_batch_size": 1,
        "zero": 1,
        "recompute": {"mode": "none"},
        "forward_s": 0.01,
        "backward_s": 0.02,
        "memory": {
            "weights": 1e9,
            "gradients": 2e9,
            "optimizer": 3e9,
            "activations": 4e9,
            "transient": 5e8,
            "peak": 1.05e10,
            "capacity": 7.3e10,
        },
    } | changes


def returning(value: Document) -> Callable[..., Document]:
    """A stand-in that answers `value` whatever it is asked."""

    def answer(*_arguments: object, **_options: object) -> Document:
        return value

    return answer


def failing(error: Exception) -> Callable[..., Document]:
    """A stand-in that raises `error`."""

    def fail(*_arguments: object, **_options: object) -> Document:
        raise error

    return fail


def plan_document(**changes: Any) -> Document:
    document: Document = {
        "schema": "haplan.plan/v1",
        "id": PLAN_ID,
        "status": "feasible",
        "target": "runner",
        "reproducible": True,
        "model": {"name": "llama3-8b", "layers": 32, "parameters": 8030261248, "graph": {}},
        "cluster": {
            "name": "hybrid-64",
            "chips": {"nvidia-a100-sxm-80g": 64},
            "document": {
                "pools": [
                    {"name": "ib", "chip": "nvidia-a100-sxm-80g"},
                    {"name": "roce", "chip": "nvidia-a100-sxm-80g"},
                ]
            },
        },
        "job": {"global_batch_size": 64, "sequence_length": 4096, "precision": "bf16"},
        "schedule": {"kind": "1f1b", "virtual_stages": 1},
        "pipelines": [
            {
                "count": 4,
                "microbatches": 16,
                "stages": [stage("ib", 0, 17), stage("roce", 17, 32)],
            }
        ],
        "idle": {"ib": 0, "roce": 8},
        "prediction": PREDICTION | {},
        "bound": {"step_time_s": 1.9, "gap": 0.0526, "method": "test"},
        "alternatives": [{"target": "any", "step_time_s": 1.9, "relative": -0.05}],
        "baselines": [
            {"name": "uniform", "step_time_s": 2.8, "speedup": 1.4},
            {"name": "single pool", "step_time_s": None, "speedup": None},
        ],
        "search": {"elapsed_s": 0.5, "evaluated": 1000, "pruned": {}},
        "warnings": ["a warning"],
        "assumptions": ["an assumption"],
    }
    return document | changes
