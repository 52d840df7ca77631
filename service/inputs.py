"""Reads what a question names or holds: model, cluster, job. All faults come in one answer.

A name from the network is looked up among the bundled ones only; a name from the command line may
also be a path.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from costmodel.errors import InputError, UnknownNameError
from costmodel.hardware.read import cluster_names, load_cluster
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.read import is_inline
from costmodel.model.graph import ModelGraph
from costmodel.model.read import load_model, model_names
from costmodel.problem import Problem
from costmodel.schedules.registry import schedule as schedule_kind
from haplan_client.schema.requests import ConfigModel, GraphModel, JobDocument, Question
from planner.targets import resolve_target
from service.violations import Collector


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where names may lead, and how an unknown model type is read.

    files: a name may be a path. as_family: the family to read an unknown model type as.
    """

    files: bool = True
    as_family: str | None = None


DEFAULT_TARGET = "runner"
BUNDLED_ONLY = Sources(files=False)


def read_inputs(question: Question, sources: Sources, *, target: str | None = None) -> Problem:
    """Model, cluster and job of a question; `target` is checked along with them."""
    faults = Collector()
    with faults.reading("/model"):
        model = read_model(question.model, sources)
    with faults.reading("/cluster"):
        cluster = read_cluster(question.cluster, sources)
    with faults.reading("/job/schedule"):
        job = read_job(question.job)
    with faults.reading("/target"):
        resolve_target(target or DEFAULT_TARGET)
    faults.check()
    return Problem(model=model, cluster=cluster, job=job)


def read_model(source: str | ConfigModel | GraphModel, sources: Sources) -> ModelGraph:
    """A model by name, path, configuration or graph."""
    if isinstance(source, ConfigModel):
        return load_model({"config": source.config}, as_family=source.as_family)
    if isinstance(source, GraphModel):
        return load_model({"graph": source.graph})
    if not sources.files:
        return load_model(known(source, "model", model_names()))
    return load_model(source, as_family=sources.as_family)


def read_cluster(source: str | dict[str, Any], sources: Sources) -> Cluster:
    """A cluster by name, path or document."""
    if isinstance(source, str) and not sources.files:
        return load_cluster(known(source, "cluster", cluster_names()))
    return load_cluster(source)


def read_layout_source(
    source: str | Mapping[str, Any], sources: Sources
) -> str | Mapping[str, Any]:
    """What a layout is read from: a document, the inline form or, on the command line, a path."""
    if isinstance(source, str) and not sources.files and not is_inline(source):
        raise InputError.of(
            field="",
            value=source,
            rule="must be a layout document or the inline form",
            fix="write it as in tp=8,pp=4,dp=2",
        )
    return source


def known(name: str, kind: str, names: Sequence[str]) -> str:
    """`name`, if it is one of `names`."""
    if name not in names:
        raise UnknownNameError(kind=kind, name=name, known=names)
    return name


def read_job(document: JobDocument) -> Job:
    """The job as a value; `auto` becomes a free choice."""
    if document.schedule != "auto":
        schedule_kind(document.schedule)
    fields = {key: None if value == "auto" else value for key, value in document}
    return Job(**cast("dict[str, Any]", fields))
