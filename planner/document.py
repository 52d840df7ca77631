"""Plan to JSON and back (schema ``haplan.plan/v1``).

The document is self-contained: model graph, cluster, job, space and versions are in it, so reading
it back needs nothing else. The prediction is evaluated again when a plan is read.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any

from costmodel.errors import InputError
from costmodel.evaluation import Evaluation, StageEvaluation
from costmodel.hardware.read import load_cluster
from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from costmodel.model.document import graph_document
from costmodel.model.parameters import parameter_counts
from costmodel.model.read import load_model
from costmodel.problem import Problem
from costmodel.step import evaluate
from planner.values import (
    Alternative,
    Baseline,
    Bound,
    Document,
    Effort,
    Group,
    NodeTable,
    Plan,
    Shortfall,
    content_id,
)

SCHEMA = "haplan.plan/v1"
INTERVAL_HALF_WIDTH = 0.27
"""Half of the 90 % interval around a predicted step time, relative: with one software profile for
all stacks, 90 % of some 1,500 published runs lie this close to the pooled fit."""


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
        "prediction": prediction_document(plan.evaluation),
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
            stage_document(stage, [list(copy) for copy in where])
            for stage, where in zip(evaluated, nodes, strict=True)
        ],
    }


def stage_document(evaluated: StageEvaluation, nodes: list[list[int]]) -> Document:
    """One stage: what it runs, where (node indices of each copy), its times and memory."""
    stage, option, memory = evaluated.stage, evaluated.stage.option, evaluated.memory
    names = ("tp", "sequence_parallel", "cp", "ep", "etp", "replicas", "micro_batch_size", "zero")
    terms = ("weights", "gradients", "optimizer", "activations", "transient", "fixed")
    return {
        "pool": option.pool,
        "nodes": nodes,
        "chunks": [list(chunk) for chunk in stage.chunks],
        "embedding": stage.embedding,
        "head": stage.head,
        "mtp": stage.mtp,
        **{name: getattr(option, name) for name in names},
        "recompute": {"mode": option.recompute},
        "forward_s": evaluated.time.forward_s,
        "backward_s": evaluated.time.backward_s,
        "in_flight": evaluated.in_flight,
        "memory": {
            **{name: getattr(memory, name) for name in terms},
            "peak": memory.peak,
            "capacity": memory.capacity,
        },
    }


def prediction_document(evaluation: Evaluation) -> Document:
    """The predicted step; the breakdown sums to the step time."""
    step_s = evaluation.step_time_s
    return {
        "step_time_s": step_s,
        "interval_s": [step_s * (1 - INTERVAL_HALF_WIDTH), step_s * (1 + INTERVAL_HALF_WIDTH)],
        "tokens_per_s": evaluation.tokens_per_s,
        "tokens_per_s_per_chip": evaluation.tokens_per_s / evaluation.num_chips,
        "tflops_per_chip": evaluation.tflops_per_chip,
        "mfu": evaluation.mfu,
        "breakdown": dict(evaluation.breakdown),
    }


def read_plan(document: Mapping[str, Any]) -> Plan:
    """The plan behind its document. Raises InputError for another schema or a broken document."""
    if document.get("schema") != SCHEMA:
        raise InputError.of(
            field="/schema",
            value=document.get("schema"),
            rule=f"must be {SCHEMA}",
            fix="give a plan that `haplan plan` wrote",
        )
    try:
        return _read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError.of(
            field="", value=str(error), rule="must be a whole plan", fix="plan again"
        ) from error


def _read(document: Mapping[str, Any]) -> Plan:
    problem = Problem(
        model=load_model({"graph": document["model"]["graph"]}),
        cluster=load_cluster(document["cluster"]["document"]),
        job=Job(**document["job"]),
    )
    layout = read_layout(document) if document["pipelines"] else None
    return Plan(
        problem=problem,
        target=document["target"],
        status=document["status"],
        reproducible=document["reproducible"],
        space=MappingProxyType(dict(document["space"])),
        versions=MappingProxyType(dict(document["versions"])),
        layout=layout,
        evaluation=evaluate(problem, layout) if layout else None,
        nodes=_read_nodes(document),
        groups=tuple(_read_group(g) for g in document["groups"]),
        bound=Bound(**document["bound"]) if document["bound"] else None,
        baselines=tuple(Baseline(**b) for b in document["baselines"]),
        alternatives=tuple(Alternative(**a) for a in document["alternatives"]),
        effort=Effort(**document["search"]),
        shortfall=_read_shortfall(document.get("shortfall")),
        warnings=tuple(document["warnings"]),
        assumptions=tuple(document["assumptions"]),
    )


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
    names = [f.name for f in fields(StageOption) if f.name != "recompute"]
    option = StageOption(
        **{name: stage[name] for name in names}, recompute=stage["recompute"]["mode"]
    )
    return Stage(
        option=option,
        chunks=tuple((start, stop) for start, stop in stage["chunks"]),
        embedding=stage["embedding"],
        head=stage["head"],
        mtp=stage["mtp"],
    )


def _read_nodes(document: Mapping[str, Any]) -> NodeTable:
    return tuple(
        tuple(tuple(tuple(copy) for copy in stage["nodes"]) for stage in pipeline["stages"])
        for pipeline in document["pipelines"]
    )


def _read_group(group: Mapping[str, Any]) -> Group:
    fields_of: dict[str, Any] = dict(group)
    fields_of["stages"] = tuple((d, i) for d, i in group["stages"])
    return Group(**fields_of)


def _read_shortfall(shortfall: Mapping[str, Any] | None) -> Shortfall | None:
    if shortfall is None:
        return None
    fields_of: dict[str, Any] = dict(shortfall)
    fields_of["changes"] = tuple(shortfall["changes"])
    return Shortfall(**fields_of)
