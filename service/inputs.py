"""Reads what a question names or holds: model, cluster, job. All faults come in one answer.

A name from the network is looked up among the bundled ones only; a name from the command line may
also be a path.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from costmodel.errors import InputError, UnknownNameError, Violation
from costmodel.hardware.read import cluster_names, load_cluster
from costmodel.hardware.values import Cluster
from costmodel.jobs.read import check_schedule, job_of
from costmodel.layout.read import is_inline
from costmodel.model.graph import ModelGraph
from costmodel.model.read import load_model, model_names
from costmodel.problem import Problem
from haplan_client.schema.requests import ConfigModel, GraphModel, Model, Question
from planner.targets.registry import LAUNCHABLE, check_target
from service.collector import Collector, is_sound
from service.sources import Sources

Document = dict[str, Any]

DEFAULT_TARGET = LAUNCHABLE


def read_inputs(question: Question, sources: Sources, *, target: str | None = None) -> Problem:
    """Model, cluster and job of a question; `target` is checked along with them."""
    faults = Collector()
    with faults.reading(place_of_model(question.model)):
        model = read_model(question.model, sources)
    with faults.reading("/cluster"):
        cluster = read_cluster(question.cluster, sources)
    with faults.reading("/job"):
        job = job_of(question.job)
    with faults.reading("/target"):
        check_target(target or DEFAULT_TARGET)
    faults.check()
    return Problem(model=model, cluster=cluster, job=job)


def other_faults(
    document: Mapping[str, Any],
    broken: Sequence[str],
    sources: Sources,
    *,
    target: str | None = None,
) -> list[Violation]:
    """What else is wrong with a question whose document breaks rules: in the parts that do not.

    So that a misspelt name and a negative number come in one answer.
    """
    faults = Collector()
    model = as_model(document.get("model"))
    if model is not None and is_sound("/model", broken):
        with faults.reading(place_of_model(model)):
            read_model(model, sources)
    cluster, job = document.get("cluster"), document.get("job")
    if isinstance(cluster, str | dict) and is_sound("/cluster", broken):
        with faults.reading("/cluster"):
            read_cluster(cast("str | dict[str, Any]", cluster), sources)
    schedule = cast("Document", job).get("schedule") if isinstance(job, dict) else None
    if isinstance(schedule, str) and is_sound("/job/schedule", broken):
        with faults.reading("/job"):
            check_schedule(schedule)
    wanted = document.get("target", target)
    if isinstance(wanted, str) and is_sound("/target", broken):
        with faults.reading("/target"):
            check_target(wanted)
    return faults.violations


def as_model(value: object) -> str | ConfigModel | GraphModel | None:
    """The model part of a question, where it has the right shape."""
    try:
        return TypeAdapter[str | ConfigModel | GraphModel](Model).validate_python(value)
    except ValidationError:
        return None


def place_of_model(source: str | ConfigModel | GraphModel) -> str:
    """Where in a question the model's own fields are."""
    if isinstance(source, ConfigModel):
        return "/model/config"
    return "/model/graph" if isinstance(source, GraphModel) else "/model"


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
