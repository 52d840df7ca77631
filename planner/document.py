"""Plan to JSON (schema ``haplan.plan/v1``).

The document is self-contained: model graph, cluster, job, space and versions are in it, so
``planner.plan_reading`` needs nothing else to read it back.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from costmodel.estimate_document import plan_stage_document, prediction_document
from costmodel.evaluation import StageEvaluation
from costmodel.job import Job
from costmodel.layout.values import (
    NO_OFFLOAD,
    Layout,
    Pipeline,
    Schedule,
    Stage,
    StageOption,
)
from costmodel.model.document import graph_document
from costmodel.model.parameters import parameter_counts
from costmodel.problem import Problem
from planner.values import Document, Effort, Group, Plan, content_id

SCHEMA = "haplan.plan/v1"


def plan_document(plan: Plan) -> Document:
    """The whole plan as plain data."""
    document: Document = {
        "schema": SCHEMA,
        "status": plan.status,
        "target": plan.target,
        "reproducible": plan.reproducible,
        "model": _model(plan.problem),
        "cluster": _cluster(plan.problem),
        "job": _job(plan.problem.job),
        "space": dict(plan.space),
        "versions": dict(plan.versions),
        **_layout(plan),
        "bound": asdict(plan.bound) if plan.bound else None,
        "alternatives": [asdict(a) for a in plan.alternatives],
        "baselines": [asdict(b) for b in plan.baselines],
        "search": {**_effort(plan.effort)},
        "warnings": list(plan.warnings),
        "assumptions": list(plan.assumptions),
    }
    if plan.shortfall is not None:
        document["shortfall"] = asdict(plan.shortfall)
    return {"schema": SCHEMA, "id": content_id(document), **document}


def _model(problem: Problem) -> Document:
    graph = problem.model
    return {
        "name": graph.name,
        "layers": graph.num_layers,
        "parameters": parameter_counts(graph).total,
        "graph": graph_document(graph),
    }


def _cluster(problem: Problem) -> Document:
    cluster = problem.cluster
    return {
        "name": cluster.name,
        "chips": cluster.chip_counts(),
        "document": dict(cluster.document),
    }


def _job(job: Job) -> Document:
    return {f.name: getattr(job, f.name) for f in fields(job)}


def _effort(effort: Effort) -> Document:
    return {
        "elapsed_s": effort.elapsed_s,
        "first_within_1pct_s": effort.first_within_1pct_s,
        "evaluated": effort.evaluated,
        "pruned": dict(effort.pruned),
    }


def _layout(plan: Plan) -> Document:
    if plan.layout is None or plan.evaluation is None:
        return {"schedule": None, "pipelines": [], "groups": [], "idle": {}, "prediction": None}
    return {
        "schedule": asdict(plan.layout.schedule),
        "pipelines": [
            _pipeline(pipeline, evaluated, nodes)
            for pipeline, evaluated, nodes in zip(
                plan.layout.pipelines, plan.evaluation.stages, plan.nodes, strict=True
            )
        ],
        "groups": [_group(group) for group in plan.groups],
        "idle": idle_chips(plan.problem, plan.layout),
        "prediction": prediction_document(plan.evaluation, plan.assumptions),
    }


def idle_chips(problem: Problem, layout: Layout) -> dict[str, int]:
    """Chips that the layout leaves unused, by pool."""
    return {
        pool.name: pool.num_chips - sum(p.count * p.chips(pool.name) for p in layout.pipelines)
        for pool in problem.cluster.pools
    }


def _group(group: Group) -> Document:
    return asdict(group) | {"stages": [list(index) for index in group.stages]}


def _pipeline(
    pipeline: Pipeline,
    evaluated: tuple[StageEvaluation, ...],
    nodes: tuple[tuple[tuple[int, ...], ...], ...],
) -> Document:
    return {
        "count": pipeline.count,
        "microbatches": pipeline.microbatches,
        "stages": [
            plan_stage_document(stage) | {"nodes": [list(copy) for copy in where]}
            for stage, where in zip(evaluated, nodes, strict=True)
        ],
    }


def read_layout(document: Mapping[str, Any]) -> Layout:
    """The layout of a plan document."""
    return Layout(
        pipelines=tuple(
            Pipeline(
                stages=tuple(_read_stage(s) for s in p["stages"]),
                microbatches=p["microbatches"],
                count=p["count"],
            )
            for p in document["pipelines"]
        ),
        schedule=Schedule(**document["schedule"]),
    )


def _read_stage(stage: Mapping[str, Any]) -> Stage:
    names = [f.name for f in fields(StageOption) if f.name not in ("recompute", "offload")]
    option = StageOption(
        **{name: stage[name] for name in names},
        recompute=stage["recompute"]["mode"],
        offload=stage.get("offload", NO_OFFLOAD),
    )
    return Stage(
        option=option,
        chunks=tuple((start, stop) for start, stop in stage["chunks"]),
        embedding=stage["embedding"],
        head=stage["head"],
        mtp=stage["mtp"],
    )
