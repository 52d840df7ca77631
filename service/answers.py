"""What a worker process answers: a document or a problem, both plain values.

Errors are turned into problems in the process where they happen, because an exception that
crosses a process boundary is rebuilt from its text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from costmodel.errors import HaplanError, Violation
from haplan_client.schema.errors import Problem
from haplan_client.schema.requests import EstimateRequest, PlanRequest
from service.collector import is_sound
from service.outcomes import problem_of
from service.sources import BUNDLED_ONLY

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A document, or the problem that stands in its way."""

    document: Document = field(default_factory=dict[str, Any])
    problem: Problem | None = None


def answer_plan(body: Document) -> Answer:
    """Make the plan that a request body asks for."""
    from service.usecases import make_plan

    return _answer(lambda: make_plan(PlanRequest.model_validate(body)))


def answer_estimate(body: Document) -> Answer:
    """Make the estimate that a request body asks for."""
    from service.usecases import make_estimate

    return _answer(lambda: make_estimate(EstimateRequest.model_validate(body)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuestion:
    """A stored plan and which of its pipelines to draw."""

    plan: Document
    pipeline: int | None


def answer_trace(question: TraceQuestion) -> Answer:
    """Draw the timeline of a plan; the document holds it as ``text``."""
    from service.simulation import trace_of

    return _answer(lambda: {"text": trace_of(question.plan, question.pipeline)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulty:
    """The sound parts of a question, and the fields that break rules."""

    document: Document
    broken: tuple[str, ...]


def sound_parts(body: Document, broken: Sequence[str]) -> Document:
    """What of a body may be looked at: no part that breaks a rule, such as one nested too deep."""
    parts = {key: value for key, value in body.items() if is_sound(f"/{key}", broken)}
    job = body.get("job")
    if isinstance(job, dict) and is_sound("/job/schedule", broken):
        parts["job"] = {"schedule": cast("Document", job).get("schedule")}
    return parts


def answer_faults(question: Faulty) -> list[Violation]:
    """What else is wrong with a question that breaks rules."""
    from service.inputs import other_faults

    return other_faults(question.document, question.broken, BUNDLED_ONLY)


def _answer(work: Callable[[], Document]) -> Answer:
    try:
        return Answer(document=work())
    except HaplanError as error:
        return Answer(problem=problem_of(error))
