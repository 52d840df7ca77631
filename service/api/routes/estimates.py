"""Estimates: what one given layout costs."""

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from haplan_client.schema.requests import EstimateRequest
from service.answers import answer_estimate
from service.api.problems import ProblemError
from service.api.services import ServicesOf
from service.api.strict_json import ONE_OF_EACH_KEY

router = APIRouter(prefix="/v1/estimates", tags=["estimates"])


@router.post("", response_model=dict[str, Any], dependencies=[ONE_OF_EACH_KEY])
async def create_estimate(body: EstimateRequest, services: ServicesOf) -> Response:
    """Predict step time and memory of one layout, term by term."""
    limit_s = services.settings.estimate_limit_s
    answer = await services.workers.run(answer_estimate, body.model_dump(), limit_s=limit_s)
    if answer.problem is not None:
        raise ProblemError(answer.problem)
    return JSONResponse(answer.document)
