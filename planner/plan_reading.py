"""Plans from their documents (schema ``haplan.plan/v1``): all faults of an edited one at once.

The prediction is evaluated again when a plan is read.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar, cast

from costmodel.errors import InputError, UnknownNameError, Violation
from costmodel.hardware.read import load_cluster
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.jobs.read import load_job
from costmodel.layout.read import load_layout
from costmodel.layout.values import Layout
from costmodel.model.graph import ModelGraph
from costmodel.model.read import load_model
from costmodel.problem import Problem
from costmodel.step import evaluate
from planner.document import SCHEMA
from planner.records import fault, faults, frozen, record, record_faults
from planner.values import Alternative, Baseline, Bound, Effort, Group, NodeTable, Plan, Shortfall

A = TypeVar("A")

STATUSES = ("optimal", "feasible", "infeasible")
INFEASIBLE = STATUSES[-1]
PLAIN: Mapping[str, Any] = MappingProxyType(
    {
        "target": str,
        "status": str,
        "reproducible": bool,
        "space": Mapping[str, object],
        "versions": Mapping[str, str],
        "warnings": tuple[str, ...],
        "assumptions": tuple[str, ...],
    }
)
RECORDS: Mapping[str, type] = MappingProxyType(
    {"groups": Group, "baselines": Baseline, "alternatives": Alternative}
)
NODES = tuple[tuple[int, ...], ...]
"""Of one stage: the node indices of each copy."""


def read_plan(document: Mapping[str, Any]) -> Plan:
    """The plan behind its document. Raises InputError with every fault, each by its pointer."""
    check_schema(document)
    found: list[Violation] = [*_rest_faults(document)]
    problem = _attempt(found, "", lambda: read_problem(document))
    layout = None
    if problem is not None and document.get("pipelines") != []:
        layout = _attempt(found, "", lambda: load_layout(problem, document))
        known = {violation.field for violation in found}
        found += [v for v in unknown_pools(document, problem.cluster) if v.field not in known]
    if found or problem is None:
        raise InputError(found)
    return _plan(document, problem, layout)


def check_schema(document: Mapping[str, Any]) -> None:
    """Raise InputError unless the document says that it is a plan."""
    if document.get("schema") != SCHEMA:
        raise InputError.of(
            field="/schema",
            value=document.get("schema"),
            rule=f"must be {SCHEMA}",
            fix="give a plan that `haplan plan` wrote",
        )


def read_problem(document: Mapping[str, Any]) -> Problem:
    """Model, cluster and job of a plan. Raises InputError with every fault."""
    found: list[Violation] = []
    model = _attempt(found, "/model/graph", lambda: _model(document))
    cluster = _attempt(found, "/cluster/document", lambda: _cluster(document))
    job = _attempt(found, "/job", lambda: _job(document))
    if model is None or cluster is None or job is None:
        raise InputError(found)
    return Problem(model=model, cluster=cluster, job=job)


def _model(document: Mapping[str, Any]) -> ModelGraph:
    return load_model({"graph": _mapping_at(document, "model", "graph")})


def _cluster(document: Mapping[str, Any]) -> Cluster:
    return load_cluster(_mapping_at(document, "cluster", "document"))


def _job(document: Mapping[str, Any]) -> Job:
    job = _mapping_at(document, "job")
    return load_job({name: "auto" if value is None else value for name, value in job.items()})


def _mapping_at(document: Mapping[str, Any], *names: str) -> dict[str, Any]:
    value: object = document
    for name in names:
        value = _entry(value, name)
    if not isinstance(value, dict):
        raise InputError([fault("", value, "must be a mapping in a whole plan")])
    return cast("dict[str, Any]", value)


def _entry(value: object, name: str) -> object:
    """What a mapping holds under a name; nothing where there is no mapping."""
    return cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None


def _attempt(found: list[Violation], place: str, read: Callable[[], A]) -> A | None:
    """What `read` gives; its faults go to `found`, seen from outside of `place`."""
    try:
        return read()
    except InputError as error:
        found += [_located(place, violation) for violation in error.violations]
        return None


def _located(place: str, violation: Violation) -> Violation:
    inner = violation.field
    if inner.startswith("/") or not inner:
        return replace(violation, field=f"{place}{inner}")
    return replace(violation, field=f"{place} {inner}".strip())


def _rest_faults(document: Mapping[str, Any]) -> Iterator[Violation]:
    """Faults outside of model, cluster, job and layout."""
    for name in (*PLAIN, *RECORDS, "bound", "search"):
        if name not in document:
            yield fault(f"/{name}", "nothing", "is required")
    for name, hint in PLAIN.items():
        if name in document:
            yield from faults(hint, document[name], f"/{name}")
    for name, kind in RECORDS.items():
        yield from _each(kind, document.get(name, []), f"/{name}")
    for name, kind in (("bound", Bound), ("shortfall", Shortfall)):
        if document.get(name) is not None:
            yield from record_faults(kind, document[name], f"/{name}")
    if "search" in document:
        yield from record_faults(Effort, document["search"], "/search")
    yield from _status_faults(document)
    yield from _node_faults(document)


def _each(kind: type, values: object, place: str) -> Iterator[Violation]:
    if not isinstance(values, list):
        yield fault(place, values, "must be a list")
        return
    for index, value in enumerate(cast("list[object]", values)):
        yield from record_faults(kind, value, f"{place}/{index}")


def _status_faults(document: Mapping[str, Any]) -> Iterator[Violation]:
    """The status is a known one, and only an infeasible plan has neither pipelines nor bound."""
    status = document.get("status")
    if isinstance(status, str) and status not in STATUSES:
        yield fault("/status", status, f"must be one of {', '.join(STATUSES)}")
    if status == INFEASIBLE:
        return
    if document.get("pipelines") == []:
        yield fault("/pipelines", [], "must hold a pipeline unless the status is infeasible")
    if "bound" in document and document["bound"] is None:
        yield fault("/bound", None, "must be given unless the status is infeasible")


def _node_faults(document: Mapping[str, Any]) -> Iterator[Violation]:
    for place, stage in _stages(document):
        if "nodes" in stage:
            yield from faults(NODES, stage["nodes"], f"{place}/nodes")


def unknown_pools(document: Mapping[str, Any], cluster: Cluster) -> list[Violation]:
    """Stages on pools that the cluster does not have, also where the layout has other faults."""
    names = [pool.name for pool in cluster.pools]
    return [
        violation
        for place, stage in _stages(document)
        if isinstance(stage.get("pool"), str) and stage["pool"] not in names
        for violation in UnknownNameError(
            kind="pool", name=stage["pool"], known=names, field=f"{place}/pool"
        ).violations
    ]


def _stages(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every stage that is one, with its place; the layout's own reader names the others."""
    for d, pipeline in enumerate(_items(document, "pipelines")):
        for i, stage in enumerate(_items(pipeline, "stages")):
            if isinstance(stage, Mapping):
                yield f"/pipelines/{d}/stages/{i}", cast("Mapping[str, Any]", stage)


def _items(value: object, name: str) -> list[Any]:
    items = _entry(value, name)
    return cast("list[Any]", items) if isinstance(items, list) else []


def _plan(document: Mapping[str, Any], problem: Problem, layout: Layout | None) -> Plan:
    """The plan of a document without faults."""
    bound, shortfall = document["bound"], document.get("shortfall")
    return Plan(
        problem=problem,
        target=document["target"],
        status=document["status"],
        reproducible=document["reproducible"],
        space=MappingProxyType(dict(document["space"])),
        versions=MappingProxyType(dict(document["versions"])),
        layout=layout,
        evaluation=evaluate(problem, layout) if layout else None,
        nodes=_nodes(document),
        groups=tuple(record(Group, group) for group in document["groups"]),
        bound=record(Bound, bound) if bound else None,
        baselines=tuple(record(Baseline, baseline) for baseline in document["baselines"]),
        alternatives=tuple(record(Alternative, other) for other in document["alternatives"]),
        effort=record(Effort, document["search"]),
        shortfall=record(Shortfall, shortfall) if shortfall else None,
        warnings=tuple(document["warnings"]),
        assumptions=tuple(document["assumptions"]),
    )


def _nodes(document: Mapping[str, Any]) -> NodeTable:
    return cast(
        "NodeTable",
        tuple(
            tuple(frozen(stage.get("nodes", [])) for stage in pipeline["stages"])
            for pipeline in document["pipelines"]
        ),
    )
