"""Executes a reduced plan and says whether it does what the plan promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costmodel.errors import InputError
from costmodel.hardware.read import load_cluster
from costmodel.job import Job
from costmodel.layout.rules import violations
from costmodel.layout.values import Layout
from costmodel.model.read import load_model
from costmodel.problem import Problem
from costmodel.traffic import Widths, forecast
from planner.document import SCHEMA, read_layout
from runner.degrees import num_ranks
from runner.launch import launch
from runner.reduction import Reduced, reduce_plan
from runner.report import Report, executed, rejected
from runner.support import refusals
from runner.task import Fault, Task

EXECUTED = Widths(activation=8, gradient=8, weight=8, loss=8)
"""The runner computes and communicates in float64."""


def validated(
    document: Mapping[str, Any], *, max_ranks: int, seed: int, timeout_s: float
) -> Report:
    """The report on a plan document; ``runner.validate`` says what the parameters are."""
    problem, layout = read(document)
    broken = violations(problem, layout)
    if broken:
        return rejected(broken)
    reduced = reduce_plan(problem.model, layout, problem.job, max_ranks)
    refused = refusals(problem.model, layout) or refusals(reduced.graph, reduced.layout)
    if refused:
        raise InputError(refused)
    return run(reduced, seed=seed, timeout_s=timeout_s)


def run(
    reduced: Reduced, *, seed: int = 0, timeout_s: float = 300.0, fault: Fault | None = None
) -> Report:
    """Executes a reduced plan; ``fault`` is a mistake that the report has to find."""
    outcome = launch(
        Task(
            graph=reduced.graph,
            layout=reduced.layout,
            job=reduced.job,
            seed=seed,
            fault=fault or Fault(),
            timeout_s=timeout_s,
        )
    )
    predicted = forecast(reduced.graph, reduced.layout, reduced.job, element=EXECUTED)
    return executed(reduced, num_ranks(reduced.layout), outcome, predicted)


def read(document: Mapping[str, Any]) -> tuple[Problem, Layout]:
    """Problem and layout of a plan document, without evaluating them."""
    if document.get("schema") != SCHEMA:
        raise InputError.of(
            field="/schema",
            value=document.get("schema"),
            rule=f"must be {SCHEMA}",
            fix="give a plan that `haplan plan` wrote",
        )
    try:
        problem = Problem(
            model=load_model({"graph": document["model"]["graph"]}),
            cluster=load_cluster(document["cluster"]["document"]),
            job=Job(**document["job"]),
        )
        layout = read_layout(document) if document["pipelines"] else Layout(pipelines=())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError.of(
            field="", value=str(error), rule="must be a whole plan", fix="plan again"
        ) from error
    return problem, layout
