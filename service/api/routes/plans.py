"""Plans: made and stored by POST, read by GET."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from haplan_client.schema.requests import PlanRequest
from service.answers import TraceQuestion, answer_plan, answer_trace
from service.api.problems import ProblemError
from service.api.services import ServicesOf
from service.api.strict_json import ONE_OF_EACH_KEY
from service.outcomes import NotFoundError

router = APIRouter(prefix="/v1/plans", tags=["plans"])

PlanId = Annotated[str, Path(pattern=r"^sha256:[0-9a-f]{64}$")]


class PlanSummary(BaseModel):
    """One line of the list of stored plans."""

    id: str
    created_at: str
    status: str
    model: str
    cluster: str
    step_time_s: float | None


class PlanList(BaseModel):
    """Stored plans, newest first."""

    items: list[PlanSummary]


@router.post("", status_code=201, response_model=dict[str, Any], dependencies=[ONE_OF_EACH_KEY])
async def create_plan(body: PlanRequest, services: ServicesOf) -> Response:
    """Find the fastest layout and store the plan; an infeasible one says so in `status`."""
    limit_s = body.time_limit_s + services.settings.grace_s
    answer = await services.workers.run(answer_plan, body.model_dump(), limit_s=limit_s)
    if answer.problem is not None:
        raise ProblemError(answer.problem)
    document = services.plans.keep(answer.document)
    plan_id = document["id"]
    headers = {"Location": f"/v1/plans/{plan_id}", "ETag": f'"{plan_id}"'}
    return JSONResponse(document, status_code=201, headers=headers)


@router.get("")
def list_plans(services: ServicesOf, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> PlanList:
    """Summaries of the stored plans, newest first."""
    items = [PlanSummary.model_validate(item) for item in services.plans.newest(limit)]
    return PlanList(items=items)


@router.get(
    "/{plan_id}",
    response_model=dict[str, Any],
    responses={304: {"description": "It has not changed"}},
)
def get_plan(
    plan_id: PlanId, services: ServicesOf, if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """A stored plan. Its ETag is its id."""
    document = services.plans.get(plan_id)
    if document is None:
        raise NotFoundError(f"no plan {plan_id} is stored here")
    headers = {"ETag": f'"{plan_id}"'}
    if if_none_match is not None and f'"{plan_id}"' in if_none_match:
        return Response(status_code=304, headers=headers)
    return JSONResponse(document, headers=headers)


@router.get(
    "/{plan_id}/trace",
    response_model=dict[str, Any],
    responses={200: {"description": "Chrome trace events, for ui.perfetto.dev"}},
)
async def get_trace(
    plan_id: PlanId,
    services: ServicesOf,
    pipeline: Annotated[int | None, Query(ge=0, le=100_000)] = None,
) -> Response:
    """The timeline of one pipeline of a stored plan, by default of that which ends the step."""
    document = services.plans.get(plan_id)
    if document is None:
        raise NotFoundError(f"no plan {plan_id} is stored here")
    limit_s = services.settings.estimate_limit_s
    question = TraceQuestion(plan=document, pipeline=pipeline)
    answer = await services.workers.run(answer_trace, question, limit_s=limit_s)
    if answer.problem is not None:
        raise ProblemError(answer.problem)
    return Response(answer.document["text"], media_type="application/json")
