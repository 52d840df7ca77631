"""What both faces offer: questions in, documents out."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import planner
from costmodel import estimate
from haplan_client.schema.requests import EstimateRequest, PlanRequest, Question
from planner.plan_reading import INFEASIBLE
from service.collector import Collector
from service.documents import check_readable, read_plan_file
from service.inputs import DEFAULT_TARGET, read_inputs, read_layout_source
from service.objectives import front_document, planned
from service.outcomes import InfeasibleError, PolicyError, TimeLimitError
from service.sources import BUNDLED_ONLY, Sources
from service.what_if import what_if_document
from service.wishes import NOTHING, Asked, read_wishes

Document = dict[str, Any]
Progress = Callable[[float, float | None], None]


def make_plan(request: PlanRequest) -> Document:
    """The plan that a request from the network asks for."""
    return plan_question(
        request,
        target=request.target or DEFAULT_TARGET,
        time_limit_s=request.time_limit_s,
        sources=BUNDLED_ONLY,
        asked=Asked(
            baselines=request.baselines,
            layout=request.layout,
            pins=tuple(request.pins),
            exclude=tuple(request.exclude),
            objective=request.objective,
            tokens=request.tokens,
            deadline_hours=request.deadline_hours,
        ),
    )


def make_estimate(request: EstimateRequest) -> Document:
    """The estimate that a request from the network asks for."""
    return estimate_question(request, layout=request.layout, sources=BUNDLED_ONLY)


def plan_question(
    question: Question,
    *,
    target: str,
    time_limit_s: float,
    sources: Sources,
    progress: Progress | None = None,
    asked: Asked = NOTHING,
) -> Document:
    """The plan of a question, as a document."""
    problem = read_inputs(question, sources, target=target)
    problem, wishes = read_wishes(asked, problem, sources)
    found = planned(
        problem, asked, wishes, target=target, time_limit_s=time_limit_s, progress=progress
    )
    if found.layout is None and not found.reproducible:
        raise TimeLimitError(f"no layout was found in {time_limit_s:g} s; allow more time")
    return found.document()


def front_question(
    question: Question, *, target: str, time_limit_s: float, sources: Sources, asked: Asked
) -> Document:
    """The front of a question over step time, cost and chips, as a document."""
    problem = read_inputs(question, sources, target=target)
    problem, wishes = read_wishes(asked, problem, sources)
    found = front_document(problem, wishes, target=target, time_limit_s=time_limit_s)
    if not found["points"]:
        raise TimeLimitError(f"no plan was found in {time_limit_s:g} s; allow more time")
    return found


def estimate_question(
    question: Question, *, layout: str | Mapping[str, Any], sources: Sources
) -> Document:
    """The prediction for one layout, as a document."""
    problem = read_inputs(question, sources)
    faults = Collector()
    with faults.reading("/layout"):
        source = read_layout_source(layout, sources)
        found = estimate(problem.model, problem.cluster, problem.job, source)
    faults.check()
    return found.document()


def explain_plan(path: Path, *, what_if: bool = False) -> Document:
    """Why a stored plan is what it is, as a document.

    what_if: search again for what a wrong cost model or one more node would change.
    """
    document = read_plan_file(path)
    faults = Collector()
    with faults.reading(f"{path} "):
        plan = planner.read_plan(document)
    faults.check()
    document = planner.explain(plan).document()
    return document | (what_if_document(plan) if what_if else {})


def validate_plan(path: Path, *, max_ranks: int) -> Document:
    """Execute a reduced plan; needs torch."""
    document = read_plan_file(path)
    faults = Collector()
    with faults.reading(f"{path} "):
        check_readable(document)
    faults.check()
    if document.get("status") == INFEASIBLE and not document.get("pipelines"):
        raise InfeasibleError("nothing to execute: the plan is infeasible")
    import runner

    try:
        return dict(runner.validate(document, max_ranks=max_ranks))
    except runner.ExecutionError as error:
        raise PolicyError(str(error)) from error
