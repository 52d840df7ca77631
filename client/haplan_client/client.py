"""The clients: two thin shells around `haplan_client.protocol`, blocking and asynchronous."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, Unpack

import httpx

from haplan_client.errors import TransportError
from haplan_client.protocol import (
    Document,
    Question,
    Request,
    Response,
    Wishes,
    estimate_request,
    list_request,
    plan_request,
    read_document,
    read_items,
    stored_plan_request,
    trace_request,
)

DEFAULT_URL = "http://127.0.0.1:8765"
DEFAULT_TIME_LIMIT_S = 10.0
CONNECT_TIMEOUT_S = 10.0


def timeout_of(request: Request) -> httpx.Timeout:
    """Long for the answer, short for the connection: a dead service is soon found out."""
    return httpx.Timeout(request.timeout_s, connect=CONNECT_TIMEOUT_S)


class Client:
    """Blocking client. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        headers: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(base_url=base_url, headers=headers, transport=transport)

    def plan(
        self,
        model: str | Mapping[str, Any],
        cluster: str | Mapping[str, Any],
        job: Mapping[str, Any],
        *,
        time_limit_s: float = DEFAULT_TIME_LIMIT_S,
        **wishes: Unpack[Wishes],
    ) -> Document:
        """The fastest layout as a plan document; an infeasible one says so in `status`.

        wishes: `target`, `pins`, `exclude`, `objective` and the other fields of `Wishes`.
        """
        question = Question(model=model, cluster=cluster, job=job)
        request = plan_request(question, time_limit_s=time_limit_s, **wishes)
        return read_document(self._send(request))

    def estimate(
        self,
        model: str | Mapping[str, Any],
        cluster: str | Mapping[str, Any],
        job: Mapping[str, Any],
        layout: str | Mapping[str, Any],
    ) -> Document:
        """What one given layout costs, term by term."""
        question = Question(model=model, cluster=cluster, job=job)
        return read_document(self._send(estimate_request(question, layout=layout)))

    def get_plan(self, plan_id: str) -> Document:
        """A stored plan."""
        return read_document(self._send(stored_plan_request(plan_id)))

    def trace(self, plan_id: str, *, pipeline: int | None = None) -> Document:
        """The timeline of a stored plan of one pipeline, by default the one that ends the step."""
        return read_document(self._send(trace_request(plan_id, pipeline=pipeline)))

    def list_plans(self) -> list[Document]:
        """Summaries of the stored plans, newest first."""
        return read_items(self._send(list_request("plans")))

    def chips(self) -> list[Document]:
        """The bundled chips."""
        return read_items(self._send(list_request("chips")))

    def clusters(self) -> list[Document]:
        """The bundled clusters."""
        return read_items(self._send(list_request("clusters")))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, request: Request) -> Response:
        try:
            answer = self._http.request(
                request.method, request.path, json=request.body, timeout=timeout_of(request)
            )
        except httpx.TransportError as error:
            raise TransportError(f"{request.method} {request.path}: {error}") from error
        return Response(status=answer.status_code, content=answer.content)


class AsyncClient:
    """Asynchronous client. Use it as an async context manager, or await `aclose`."""

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(base_url=base_url, headers=headers, transport=transport)

    async def plan(
        self,
        model: str | Mapping[str, Any],
        cluster: str | Mapping[str, Any],
        job: Mapping[str, Any],
        *,
        time_limit_s: float = DEFAULT_TIME_LIMIT_S,
        **wishes: Unpack[Wishes],
    ) -> Document:
        """The fastest layout as a plan document; an infeasible one says so in `status`.

        wishes: `target`, `pins`, `exclude`, `objective` and the other fields of `Wishes`.
        """
        question = Question(model=model, cluster=cluster, job=job)
        request = plan_request(question, time_limit_s=time_limit_s, **wishes)
        return read_document(await self._send(request))

    async def estimate(
        self,
        model: str | Mapping[str, Any],
        cluster: str | Mapping[str, Any],
        job: Mapping[str, Any],
        layout: str | Mapping[str, Any],
    ) -> Document:
        """What one given layout costs, term by term."""
        question = Question(model=model, cluster=cluster, job=job)
        return read_document(await self._send(estimate_request(question, layout=layout)))

    async def get_plan(self, plan_id: str) -> Document:
        """A stored plan."""
        return read_document(await self._send(stored_plan_request(plan_id)))

    async def trace(self, plan_id: str, *, pipeline: int | None = None) -> Document:
        """The timeline of a stored plan of one pipeline, by default the one that ends the step."""
        return read_document(await self._send(trace_request(plan_id, pipeline=pipeline)))

    async def list_plans(self) -> list[Document]:
        """Summaries of the stored plans, newest first."""
        return read_items(await self._send(list_request("plans")))

    async def chips(self) -> list[Document]:
        """The bundled chips."""
        return read_items(await self._send(list_request("chips")))

    async def clusters(self) -> list[Document]:
        """The bundled clusters."""
        return read_items(await self._send(list_request("clusters")))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _send(self, request: Request) -> Response:
        try:
            answer = await self._http.request(
                request.method, request.path, json=request.body, timeout=timeout_of(request)
            )
        except httpx.TransportError as error:
            raise TransportError(f"{request.method} {request.path}: {error}") from error
        return Response(status=answer.status_code, content=answer.content)
