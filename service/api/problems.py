"""Errors as `application/problem+json` (RFC 9457)."""

from http import HTTPMethod, HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from costmodel.errors import HaplanError, InputError, Violation
from costmodel.wire.read import fix_of, rule_of, violations_of
from haplan_client.schema.errors import Problem
from haplan_client.schema.errors import ProblemError as ProblemDetail
from haplan_client.schema.requests import EstimateRequest, PlanRequest, Question
from service.answers import Faulty, answer_faults, sound_parts
from service.api.services import services_of
from service.outcomes import BusyError, OverdueError, problem_of

MEDIA_TYPE = "application/problem+json"

PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "The request was refused; `errors` names every broken rule",
        "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
    },
    "5XX": {
        "description": "The service failed or is busy",
        "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
    },
}


BODIES: dict[str, type[Question]] = {"/v1/plans": PlanRequest, "/v1/estimates": EstimateRequest}
"""What is read from a body, so that misspelt fields get their nearest name."""

PARAMETER_FIXES = {
    "string_pattern_mismatch": "an id is sha256: and 64 hex digits; `GET /v1/plans` lists them"
}
"""For what is not in the body; the only text with a pattern is the id of a plan."""


class ProblemError(HaplanError):
    """Carries a problem that a worker has already made."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.title)
        self.problem = problem


def problem_response(problem: Problem) -> Response:
    """The answer that says `problem`; a refusal always has an error to point at."""
    if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR and not problem.errors:
        error = ProblemDetail(detail=problem.detail or problem.title)
        problem = problem.model_copy(update={"errors": (error,)})
    headers = {"Retry-After": "2"} if problem.status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return Response(
        problem.model_dump_json(),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every kind of error with a problem."""
    app.add_exception_handler(ProblemError, _handle_problem)
    app.add_exception_handler(HaplanError, _handle_haplan_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    app.add_exception_handler(Exception, _handle_bug)


async def _handle_problem(_request: Request, error: Exception) -> Response:
    return problem_response(error.problem if isinstance(error, ProblemError) else _bug())


async def _handle_haplan_error(_request: Request, error: Exception) -> Response:
    return problem_response(problem_of(error) if isinstance(error, HaplanError) else _bug())


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        return problem_response(_bug())
    mistakes = [detail for detail in error.errors() if detail["type"] == "json_invalid"]
    if mistakes:
        place, reason = mistakes[0]["loc"][-1], mistakes[0]["ctx"]["error"]
        return problem_response(not_json(f"{reason} at character {place}"))
    if isinstance(error.body, bytes):
        return problem_response(not_said_to_be_json(request.headers.get("Content-Type")))
    broken = request_violations(error, request.url.path)
    return problem_response(
        problem_of(InputError([*broken, *await _others(request, error, broken)]))
    )


async def _others(
    request: Request, error: RequestValidationError, broken: list[Violation]
) -> list[Violation]:
    """What is wrong in the sound parts of a question; nothing when nobody is free to look."""
    body: object = error.body
    if not isinstance(body, dict):
        return []
    try:
        fields = tuple(violation.field for violation in broken)
        parts = sound_parts(cast("dict[str, Any]", body), fields)
        fault = Faulty(document=parts, broken=fields)
        services = services_of(request)
        limit_s = services.settings.estimate_limit_s
        return await services.workers.run(answer_faults, fault, limit_s=limit_s)
    except (BusyError, OverdueError):
        return []


def request_violations(error: RequestValidationError, path: str) -> list[Violation]:
    """What is wrong with a request: in its body by pointer, elsewhere by the parameter's name."""
    details = [dict(detail) for detail in error.errors()]
    in_body = [d | {"loc": d["loc"][1:]} for d in details if d["loc"][0] == "body"]
    elsewhere = [
        Violation(
            field=".".join(str(part) for part in detail["loc"]),
            value=detail.get("input"),
            rule=rule_of(detail),
            fix=PARAMETER_FIXES.get(detail["type"]) or fix_of(detail),
        )
        for detail in details
        if detail["loc"][0] != "body"
    ]
    return [*violations_of(in_body, error.body, BODIES.get(path)), *elsewhere]


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return problem_response(_bug())
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return problem_response(not_json("it is not UTF-8 or nests too deep"))
    if error.status_code == HTTPStatus.NOT_FOUND:
        return problem_response(no_such_path(request.url.path))
    title = HTTPStatus(error.status_code).phrase
    problem = Problem(title=title, status=error.status_code, detail=str(error.detail))
    response = problem_response(problem)
    response.headers.update(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(allowed_methods(request))
    return response


def no_such_path(path: str) -> Problem:
    """The problem of a path that nothing answers."""
    fix = "`/openapi.json` lists all paths"
    error = ProblemDetail(
        detail=f"{path[:200]}: {fix}", field="path", rule="must be one of the service's", fix=fix
    )
    return Problem(
        title="Not Found", status=HTTPStatus.NOT_FOUND, detail=error.detail, errors=(error,)
    )


def not_json(reason: str) -> Problem:
    """The problem of a body that cannot be parsed."""
    detail = f"the body is not JSON: {reason}"
    error = ProblemDetail(detail=detail, pointer="#", rule="must be JSON", fix="correct it there")
    return Problem(
        type="urn:haplan:problem:not-json",
        title="The body is not JSON",
        status=HTTPStatus.BAD_REQUEST,
        detail=detail,
        errors=(error,),
    )


def not_said_to_be_json(media_type: str | None) -> Problem:
    """The problem of a body that came without the header that lets it be read as JSON."""
    rule, fix = "must be sent as JSON", "send the header `Content-Type: application/json`"
    detail = f"the body {rule}, got {media_type or 'no Content-Type'}; {fix}"
    error = ProblemDetail(detail=detail, field="header.Content-Type", rule=rule, fix=fix)
    return Problem(
        type="urn:haplan:problem:media-type",
        title="The body is not sent as JSON",
        status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        detail=detail,
        errors=(error,),
    )


def allowed_methods(request: Request) -> list[str]:
    """The methods of all routes that lead to the request's path; the router names the first's."""
    routes: list[BaseRoute] = request.app.routes
    return [
        method
        for method in HTTPMethod
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes
        )
    ]


async def _handle_bug(_request: Request, _error: Exception) -> Response:
    return problem_response(_bug())


def _bug() -> Problem:
    return Problem(
        type="urn:haplan:problem:internal",
        title="Something went wrong",
        status=500,
        detail="the server's log says more",
    )
