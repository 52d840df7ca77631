"""What is said to the service, without saying it: requests out, responses in, no I/O.

The blocking and the asynchronous client are thin shells around these functions.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack, cast
from urllib.parse import quote

from pydantic import ValidationError

from haplan_client.errors import ServerError, error_for
from haplan_client.schema.errors import Problem

Document = dict[str, Any]

ANSWER_MARGIN_S = 75.0
"""What a request may take beyond the search itself: waiting for a worker, and its grace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to the service."""

    method: str
    path: str
    body: Document | None = None
    timeout_s: float = ANSWER_MARGIN_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back."""

    status: int
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be planned: the same three things for a plan and for an estimate."""

    model: str | Mapping[str, Any]
    cluster: str | Mapping[str, Any]
    job: Mapping[str, Any]

    def document(self) -> Document:
        """The shared part of a request body."""
        return {"model": self.model, "cluster": self.cluster, "job": dict(self.job)}


class Wishes(TypedDict, total=False):
    """What a plan has to keep to, or comes with; what is left out is as the service has it."""

    target: str | None
    baselines: bool
    layout: str | Mapping[str, Any] | None
    pins: Sequence[str]
    exclude: Sequence[str]
    objective: str
    tokens: float | None
    deadline_hours: float | None


def plan_request(question: Question, *, time_limit_s: float, **wishes: Unpack[Wishes]) -> Request:
    """Ask for the fastest layout; a wish that is None is not said."""
    said = {name: wish for name, wish in wishes.items() if wish is not None}
    body = question.document() | {"time_limit_s": time_limit_s} | said
    return Request(
        method="POST", path="/v1/plans", body=body, timeout_s=time_limit_s + ANSWER_MARGIN_S
    )


def estimate_request(question: Question, *, layout: str | Mapping[str, Any]) -> Request:
    """Ask what one given layout costs."""
    return Request(
        method="POST", path="/v1/estimates", body=question.document() | {"layout": layout}
    )


def stored_plan_request(plan_id: str) -> Request:
    """Ask for a stored plan."""
    return Request(method="GET", path=f"/v1/plans/{quote(plan_id, safe=':')}")


def trace_request(plan_id: str, *, pipeline: int | None) -> Request:
    """Ask for the timeline of a stored plan."""
    path = stored_plan_request(plan_id).path + "/trace"
    return Request(method="GET", path=path if pipeline is None else f"{path}?pipeline={pipeline}")


def list_request(kind: str) -> Request:
    """Ask for a list: `plans`, `chips` or `clusters`."""
    return Request(method="GET", path=f"/v1/{kind}")


def read_document(response: Response) -> Document:
    """The answered document; raises the typed error of a problem."""
    if response.status >= 400:
        raise error_for(read_problem(response))
    try:
        document = json.loads(response.content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise ServerError(
            Problem(title="The answer is not a JSON document", status=response.status)
        )
    return cast("Document", document)


def read_items(response: Response) -> list[Document]:
    """The items of an answered list."""
    return cast("list[Document]", read_document(response)["items"])


def read_problem(response: Response) -> Problem:
    """The problem in a response, also if something between us and the service wrote it."""
    try:
        return Problem.model_validate_json(response.content)
    except ValidationError:
        text = response.content[:200].decode("utf-8", errors="replace")
        return Problem(title=f"HTTP {response.status}", status=response.status, detail=text)
