"""The clients against a transport that is no network."""

import asyncio
import json
from collections.abc import Callable

import httpx
import pytest

import haplan_client
from haplan_client import (
    AsyncClient,
    BusyError,
    Client,
    InvalidRequestError,
    NotFoundError,
    OverdueError,
    ResponseError,
    ServerError,
    TransportError,
)
from haplan_client.protocol import Wishes
from haplan_client.schema.requests import PlanRequest, Question

JOB = {"global_batch_size": 8, "sequence_length": 128}

Handler = Callable[[httpx.Request], httpx.Response]


def client_of(handler: Handler) -> Client:
    return Client(transport=httpx.MockTransport(handler))


def answer_with(status: int, body: object) -> Handler:
    return lambda _request: httpx.Response(status, json=body)


def test_plan_sends_the_question() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, json={"id": "sha256:1"})

    with client_of(handler) as client:
        plan = client.plan("m", "c", JOB, time_limit_s=3)

    assert plan == {"id": "sha256:1"}
    assert (seen[0].method, seen[0].url.path) == ("POST", "/v1/plans")
    assert json.loads(seen[0].content) == {
        "model": "m",
        "cluster": "c",
        "job": JOB,
        "time_limit_s": 3,
    }
    assert seen[0].extensions["timeout"]["read"] > 3
    assert seen[0].extensions["timeout"]["connect"] <= 10


def test_wishes_are_sent_as_they_are_and_none_is_not_said() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(201, json=json.loads(request.content))

    with client_of(handler) as client:
        sent = client.plan("m", "c", JOB, target=None, exclude=["a:3"], pins=["tp=4,8"])

    assert (sent["exclude"], sent["pins"]) == (["a:3"], ["tp=4,8"])
    assert set(sent) == {"model", "cluster", "job", "time_limit_s", "exclude", "pins"}


def test_wishes_are_the_fields_that_a_plan_request_has_beside_the_question() -> None:
    fields = set(PlanRequest.model_fields) - set(Question.model_fields) - {"time_limit_s"}

    assert set(Wishes.__annotations__) == fields


def test_trace_asks_for_a_pipeline() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"asked": str(request.url.raw_path, "ascii")})

    with client_of(handler) as client:
        assert client.trace("sha256:1") == {"asked": "/v1/plans/sha256:1/trace"}
        assert client.trace("sha256:1", pipeline=2)["asked"].endswith("/trace?pipeline=2")


def test_estimate_sends_the_layout() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=json.loads(request.content))

    with client_of(handler) as client:
        assert client.estimate({"config": {}}, "c", JOB, "tp=1")["layout"] == "tp=1"


def test_lists_and_stored_plans_are_read() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"items": [{"path": request.url.path}]})

    with client_of(handler) as client:
        assert client.chips() == [{"path": "/v1/chips"}]
        assert client.clusters() == [{"path": "/v1/clusters"}]
        assert client.list_plans() == [{"path": "/v1/plans"}]
        assert client.get_plan("sha256:1")["items"] == [{"path": "/v1/plans/sha256:1"}]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequestError),
        (404, NotFoundError),
        (413, InvalidRequestError),
        (422, InvalidRequestError),
        (500, ServerError),
        (503, BusyError),
        (504, OverdueError),
    ],
)
def test_problems_become_typed_errors(status: int, kind: type[ResponseError]) -> None:
    problem = {
        "title": "No",
        "status": status,
        "errors": [{"detail": "a is wrong", "pointer": "#/a"}, {"detail": "b is wrong"}],
    }
    with client_of(answer_with(status, problem)) as client, pytest.raises(kind) as caught:
        client.get_plan("x")

    assert [v.pointer for v in caught.value.violations] == ["#/a", ""]
    assert str(caught.value) == "No\na is wrong\nb is wrong"


def test_an_error_page_of_a_proxy_is_understood() -> None:
    def handler(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(502, text="<html>bad gateway</html>")

    with client_of(handler) as client, pytest.raises(ServerError, match="502"):
        client.chips()


def test_an_answer_that_is_no_document_is_an_error() -> None:
    with client_of(answer_with(200, [1])) as client, pytest.raises(ServerError, match="JSON"):
        client.get_plan("x")


def test_a_dead_service_is_a_transport_error() -> None:
    def handler(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with client_of(handler) as client, pytest.raises(TransportError, match="refused"):
        client.chips()


def test_a_service_that_is_silent_is_a_transport_error() -> None:
    def handler(_request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("too slow")

    with client_of(handler) as client, pytest.raises(TransportError, match="too slow"):
        client.chips()


def test_the_asynchronous_client_does_the_same() -> None:
    async def scenario() -> None:
        transport = httpx.MockTransport(answer_with(200, {"items": [], "id": "sha256:1"}))
        async with AsyncClient(transport=transport) as client:
            assert (await client.plan("m", "c", JOB))["id"] == "sha256:1"
            assert (await client.estimate("m", "c", JOB, "tp=1"))["id"] == "sha256:1"
            assert (await client.get_plan("sha256:1"))["id"] == "sha256:1"
            assert await client.chips() == await client.clusters() == []
            assert await client.list_plans() == []

    asyncio.run(scenario())


def test_the_asynchronous_client_reports_a_dead_service() -> None:
    def handler(_request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("too slow")

    async def scenario() -> None:
        async with AsyncClient(transport=httpx.MockTransport(handler)) as client:
            await client.chips()

    with pytest.raises(TransportError, match="too slow"):
        asyncio.run(scenario())


def test_both_clients_offer_the_same() -> None:
    names = {name for name in vars(Client) if not name.startswith("_")} - {"close"}

    assert names == {name for name in vars(AsyncClient) if not name.startswith("_")} - {"aclose"}


def test_every_public_name_can_be_had() -> None:
    assert all(getattr(haplan_client, name) for name in haplan_client.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = haplan_client.nothing
