"""What both faces offer: questions in, documents out."""

from pathlib import Path
from typing import Any

import planner
from haplan_client.schema.requests import PlanRequest, Question
from service.documents import read_plan_file
from service.inputs import BUNDLED_ONLY, Sources, read_inputs

Document = dict[str, Any]

DEFAULT_TARGET = "runner"


def make_plan(request: PlanRequest) -> Document:
    """The plan that a request from the network asks for."""
    return plan_question(
        request,
        target=request.target or DEFAULT_TARGET,
        time_limit_s=request.time_limit_s,
        sources=BUNDLED_ONLY,
    )


def plan_question(
    question: Question, *, target: str, time_limit_s: float, sources: Sources
) -> Document:
    """The plan of a question, as a document."""
    inputs = read_inputs(question, sources)
    found = planner.plan(
        inputs.model, inputs.cluster, inputs.job, target=target, time_limit_s=time_limit_s
    )
    return found.document()


def validate_plan(path: Path, *, max_ranks: int) -> Document:
    """Execute a reduced plan; needs torch."""
    import runner

    return runner.validate(read_plan_file(path), max_ranks=max_ranks)
