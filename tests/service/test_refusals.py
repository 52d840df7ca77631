"""What is refused over HTTP, and how: one problem with all faults and where they are."""

import threading
import time
from collections.abc import Generator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from haplan_client.schema.requests import PlanRequest
from service import usecases
from service.api.app import create_app
from service.api.settings import Settings
from tests.service.fixtures import QUESTION, plan_document

PROBLEM = "application/problem+json"
JSON = {"Content-Type": "application/json"}
SETTINGS = Settings(database="sqlite://", processes=0, max_waiting=1, max_wait_s=0.3, grace_s=0.1)


@pytest.fixture
def client() -> Generator[TestClient]:
    with TestClient(create_app(SETTINGS), raise_server_exceptions=False) as found:
        yield found


@pytest.mark.parametrize("path", ["/v1/plans", "/v1/estimates"])
@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ('{"model": "a", "model": "b"}', ["#/model"]),
        ('{"job": {"precision": 1, "precision": 1}}', ["#/job/precision"]),
        ('{"cluster": {"pools": [{}, {"a/b": 1, "a/b": 2}]}}', ["#/cluster/pools/1/a~1b"]),
        ('{"a": 1, "a": {"b": 1, "b": 2}}', ["#/a", "#/a/b"]),
    ],
)
def test_a_key_that_is_given_twice_is_refused(
    path: str, body: str, pointers: list[str], client: TestClient
) -> None:
    answer = client.post(path, content=body, headers=JSON)

    assert (answer.status_code, answer.headers["Content-Type"]) == (422, PROBLEM)
    assert [error["pointer"] for error in answer.json()["errors"]] == pointers
    assert all("once" in error["detail"] for error in answer.json()["errors"])


@pytest.mark.parametrize("body", [b"{", b"{'a': 1}", b"\xff\xfe", b'{"a":' * 9_000])
def test_what_is_not_json_is_a_bad_request(body: bytes, client: TestClient) -> None:
    answer = client.post("/v1/plans", content=body, headers=JSON)

    assert (answer.status_code, answer.headers["Content-Type"]) == (400, PROBLEM)
    assert [error["pointer"] for error in answer.json()["errors"]] == ["#"]


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "/v1/plans", b"", 422),
        ("POST", "/v1/plans", b"[]", 422),
        ("POST", "/v1/plans", b"{}", 422),
        ("POST", "/v1/plans", b" " * (SETTINGS.max_body_bytes + 1), 413),
        ("GET", "/v1/plans?limit=0", b"", 422),
        ("GET", "/v1/plans/x", b"", 422),
        ("GET", "/v1/plans/sha256:" + "0" * 64, b"", 404),
        ("GET", "/v9", b"", 404),
        ("DELETE", "/v1/plans", b"", 405),
    ],
)
def test_every_refusal_has_errors(
    method: str, path: str, content: bytes, status: int, client: TestClient
) -> None:
    answer = client.request(method, path, content=content, headers=JSON)

    assert (answer.status_code, answer.headers["Content-Type"]) == (status, PROBLEM)
    assert answer.json()["errors"]
    assert all(error["detail"] and "pointer" in error for error in answer.json()["errors"])


def test_an_unknown_path_is_told_where_the_paths_are(client: TestClient) -> None:
    answer = client.get("/docs")

    assert answer.status_code == 404
    assert "/openapi.json" in answer.json()["errors"][0]["fix"]


def test_a_parameter_is_named(client: TestClient) -> None:
    [error] = client.get("/v1/plans?limit=0").json()["errors"]

    assert (error["field"], error["pointer"]) == ("query.limit", "")


def sleeping(seconds: float) -> Any:
    def make_plan(_request: PlanRequest) -> dict[str, Any]:
        time.sleep(seconds)
        return plan_document()

    return make_plan


def test_a_plan_that_overruns_ends_in_a_problem(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usecases, "make_plan", sleeping(2))
    before = time.monotonic()
    answer = client.post("/v1/plans", json=QUESTION | {"time_limit_s": 0.2})

    assert time.monotonic() - before < 1.5
    assert (answer.status_code, answer.headers["Content-Type"]) == (504, PROBLEM)
    assert "allow more time" in answer.json()["detail"]
    monkeypatch.setattr(usecases, "make_plan", sleeping(0))
    assert client.post("/v1/plans", json=QUESTION).status_code == 201


def test_who_waits_too_long_is_asked_to_come_back(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usecases, "make_plan", sleeping(1.5))
    caller = threading.Thread(target=lambda: client.post("/v1/plans", json=QUESTION))
    caller.start()
    time.sleep(0.3)
    answer = client.post("/v1/plans", json=QUESTION)
    caller.join(10)

    assert (answer.status_code, answer.headers["Content-Type"]) == (503, PROBLEM)
    assert int(answer.headers["Retry-After"]) > 0


def test_many_pools_end_in_time() -> None:
    """A search that does not look at the clock is stopped, and the next request is answered."""
    pools = [
        {
            "name": f"p{number}",
            "island": f"i{number % 20}",
            "nodes": 1 + number % 3,
            "chips_per_node": 8,
            "chip": "nvidia-h100-sxm-80g" if number % 2 else "nvidia-a100-sxm-80g",
            "scale_up": "nvlink4" if number % 2 else "nvlink3",
            "scale_out": {"link": "infiniband-hdr", "nics": 4},
        }
        for number in range(200)
    ]
    cluster = {
        "name": "many",
        "pools": pools,
        "between_islands": {"link": "ethernet-25g", "nics": 1},
    }
    settings = Settings(database="sqlite://", processes=1, grace_s=2.0)
    with TestClient(create_app(settings)) as client:
        assert client.post("/v1/plans", json=QUESTION | {"time_limit_s": 20}).status_code == 201
        before = time.monotonic()
        body = QUESTION | {"cluster": cluster, "time_limit_s": 3}
        answer = client.post("/v1/plans", json=body)
        assert time.monotonic() - before < 10
        assert answer.status_code in (201, 504)
        layout = {"layout": "tp=8,pp=4,dp=2"}
        assert client.post("/v1/estimates", json=QUESTION | layout).status_code == 200
