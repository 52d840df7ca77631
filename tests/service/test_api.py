"""The HTTP service, called in this process without a socket."""

import asyncio
import json
import threading
from collections.abc import Generator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from costmodel.errors import InputError
from haplan_client.schema.requests import PlanRequest
from service import usecases
from service.api.app import create_app
from service.api.settings import Settings
from tests.service.fixtures import PLAN_ID, QUESTION, failing, plan_document, returning

SETTINGS = Settings(database="sqlite://", processes=0, max_waiting=0, max_body_bytes=20_000)
PROBLEM = "application/problem+json"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Generator[TestClient]:
    monkeypatch.setattr(usecases, "make_plan", returning(plan_document()))
    with TestClient(create_app(SETTINGS), raise_server_exceptions=False) as found:
        yield found


def nested(depth: int) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for _ in range(depth):
        document = {"a": document}
    return document


def test_a_plan_is_made_stored_and_found_again(client: TestClient) -> None:
    made = client.post("/v1/plans", json=QUESTION)

    assert made.status_code == 201
    assert made.json() == plan_document()
    assert made.headers["ETag"] == f'"{PLAN_ID}"'
    found = client.get(made.headers["Location"])
    assert found.json() == plan_document()
    assert found.headers["ETag"] == f'"{PLAN_ID}"'


def test_a_plan_that_has_not_changed_is_not_sent_again(client: TestClient) -> None:
    client.post("/v1/plans", json=QUESTION)
    again = client.get(f"/v1/plans/{PLAN_ID}", headers={"If-None-Match": f'"{PLAN_ID}"'})

    assert (again.status_code, again.content) == (304, b"")


def test_stored_plans_are_listed_once(client: TestClient) -> None:
    client.post("/v1/plans", json=QUESTION)
    client.post("/v1/plans", json=QUESTION)
    items = client.get("/v1/plans").json()["items"]

    assert [(item["id"], item["step_time_s"]) for item in items] == [(PLAN_ID, 2.0)]


def test_an_infeasible_plan_is_an_answer_too(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    infeasible = plan_document(status="infeasible", pipelines=[])
    del infeasible["prediction"]
    monkeypatch.setattr(usecases, "make_plan", returning(infeasible))
    made = client.post("/v1/plans", json=QUESTION)

    assert (made.status_code, made.json()["status"]) == (201, "infeasible")


def test_an_unknown_plan_is_not_found(client: TestClient) -> None:
    answer = client.get("/v1/plans/sha256:" + "0" * 64)

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == PROBLEM


def test_what_is_no_id_is_told_what_an_id_is(client: TestClient) -> None:
    answer = client.get("/v1/plans/nope")
    [error] = answer.json()["errors"]

    assert (answer.status_code, error["field"]) == (422, "path.plan_id")
    assert "an id is sha256: and 64 hex digits" in error["fix"]


@pytest.mark.parametrize("path", ["/v1/plans", "/v1/estimates"])
@pytest.mark.parametrize("media_type", ["application/x-www-form-urlencoded", None])
def test_a_body_without_the_header_of_json_is_told_the_header(
    client: TestClient, path: str, media_type: str | None
) -> None:
    headers = {"Content-Type": media_type} if media_type else {}
    answer = client.post(path, content=json.dumps(QUESTION), headers=headers)
    [error] = answer.json()["errors"]

    assert (answer.status_code, answer.headers["Content-Type"]) == (415, PROBLEM)
    assert "Content-Type: application/json" in error["fix"]


def test_a_plan_made_again_is_the_stored_one(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = client.post("/v1/plans", json=QUESTION).json()
    slower = plan_document(search={"elapsed_s": 9.0, "evaluated": 1000, "pruned": {}})
    monkeypatch.setattr(usecases, "make_plan", returning(slower))

    assert client.post("/v1/plans", json=QUESTION).json() == first
    assert client.get(f"/v1/plans/{PLAN_ID}").json() == first


def test_an_unknown_path_is_a_problem_too(client: TestClient) -> None:
    answer = client.get("/v2")

    assert (answer.status_code, answer.headers["Content-Type"]) == (404, PROBLEM)


def test_all_faults_of_a_body_come_at_once(client: TestClient) -> None:
    job = {"global_batch_size": 0, "sequence_length": "many", "precision": "bf17"}
    answer = client.post("/v1/plans", json=QUESTION | {"job": job, "time_limit_s": 61})
    errors = answer.json()["errors"]

    assert answer.status_code == 422
    assert {error["pointer"] for error in errors} == {
        "#/job/global_batch_size",
        "#/job/sequence_length",
        "#/job/precision",
        "#/time_limit_s",
    }
    assert all(error["fix"] for error in errors)


def test_names_are_never_paths(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    question = QUESTION | {"model": "/etc/hostname", "cluster": "./pyproject.toml"}
    answer = client.post("/v1/plans", json=question)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["#/model", "#/cluster"]


@pytest.mark.parametrize("depth", [33, 500, 3000])
def test_deep_nesting_is_refused(client: TestClient, depth: int) -> None:
    body = '{"model":{"config":' + '{"a":' * depth + "1" + "}" * depth + '},"cluster":"c","job":{}}'
    answer = client.post("/v1/plans", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code in (400, 413, 422)
    assert answer.headers["Content-Type"] == PROBLEM


def test_numbers_that_are_not_finite_are_refused(client: TestClient) -> None:
    body = '{"model":"m","cluster":{"a":NaN},"job":{"global_batch_size":1,"sequence_length":1}}'
    answer = client.post("/v1/plans", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 422
    assert "finite" in answer.text


def test_a_large_body_is_refused(client: TestClient) -> None:
    answer = client.post("/v1/plans", content=b" " * 20_001)

    assert (answer.status_code, answer.headers["Content-Type"]) == (413, PROBLEM)


def test_a_large_body_of_unknown_length_is_refused(client: TestClient) -> None:
    answer = client.post("/v1/plans", content=(b" " * 1000 for _ in range(21)))

    assert answer.status_code == 413


def test_an_error_of_the_planner_is_a_problem(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = InputError.of(field="/cluster/pools/0", value=1, rule="must not be", fix="drop it")
    monkeypatch.setattr(usecases, "make_plan", failing(error))
    answer = client.post("/v1/plans", json=QUESTION)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "#/cluster/pools/0"


def test_a_bug_tells_nothing_of_itself(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecases, "make_plan", failing(RuntimeError("secret")))
    answer = client.post("/v1/plans", json=QUESTION)

    assert (answer.status_code, answer.headers["Content-Type"]) == (500, PROBLEM)
    assert "secret" not in answer.text


def test_health_answers_while_a_plan_is_made_and_more_are_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, finish = threading.Event(), threading.Event()

    def slow(_request: PlanRequest) -> dict[str, Any]:
        started.set()
        finish.wait(10)
        return plan_document()

    monkeypatch.setattr(usecases, "make_plan", slow)
    statuses: list[int] = []
    caller = threading.Thread(
        target=lambda: statuses.append(client.post("/v1/plans", json=QUESTION).status_code)
    )
    caller.start()
    assert started.wait(10)
    healthy = client.get("/healthz")
    refused = client.post("/v1/plans", json=QUESTION)
    finish.set()
    caller.join(10)

    assert healthy.json() == {"status": "ok"}
    assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)
    assert statuses == [201]


def test_a_wrong_method_is_told_all_right_ones(client: TestClient) -> None:
    answer = client.delete("/v1/plans")

    assert (answer.status_code, answer.headers["Content-Type"]) == (405, PROBLEM)
    assert {"GET", "POST"} <= set(answer.headers["Allow"].split(", "))


def test_the_description_names_every_resource(client: TestClient) -> None:
    description = client.get("/openapi.json").json()

    assert set(description["paths"]) == {
        "/healthz",
        "/v1/chips",
        "/v1/clusters",
        "/v1/estimates",
        "/v1/plans",
        "/v1/plans/{plan_id}",
        "/v1/plans/{plan_id}/trace",
    }


def test_two_applications_share_nothing(client: TestClient) -> None:
    client.post("/v1/plans", json=QUESTION)
    with TestClient(create_app(SETTINGS)) as other:
        assert other.get("/v1/plans").json() == {"items": []}


def test_nothing_is_open_after_the_end() -> None:
    app = create_app(SETTINGS)

    async def scenario() -> None:
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(scenario())
    assert app.state.services.workers is not None


def test_wrong_values_do_not_hide_wrong_names(client: TestClient) -> None:
    job = {"global_batch_size": 0, "sequence_length": "x", "schedule": "1f2b"}
    body = {"model": "lama3-8b", "cluster": "hybrd-64", "job": job, "target": "rnner", "modle": 1}
    answer = client.post("/v1/plans", json=body)
    errors = {error["pointer"]: error["fix"] for error in answer.json()["errors"]}

    assert answer.status_code == 422
    assert set(errors) == {
        "#/job/global_batch_size", "#/job/sequence_length", "#/job/schedule",
        "#/model", "#/cluster", "#/target", "#/modle",
    }  # fmt: skip
    assert "did you mean model" in errors["#/modle"]
    assert "hybrid-64" in errors["#/cluster"]


@pytest.mark.parametrize(
    ("model", "pointer"),
    [
        ({"config": {"model_type": "lama"}}, "#/model/config/model_type"),
        ({"graph": {"name": "x"}}, "#/model/graph/blocks"),
        ({}, "#/model/config"),
    ],
)
def test_pointers_lead_into_the_body(
    model: dict[str, Any], pointer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    with TestClient(create_app(SETTINGS)) as client:
        answer = client.post("/v1/plans", json=QUESTION | {"model": model})

    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


def test_a_misspelt_field_of_the_job_gets_its_nearest_name(client: TestClient) -> None:
    body = QUESTION | {"job": QUESTION["job"] | {"precison": "bf16"}}
    [error] = client.post("/v1/plans", json=body).json()["errors"]

    assert (error["pointer"], error["fix"]) == ("#/job/precison", "did you mean precision?")


@pytest.mark.parametrize("part", ["model", "cluster", "job", "other"])
def test_deep_nesting_is_a_problem_for_worker_processes_too(part: str) -> None:
    deep = '{"a":' * 500 + "1" + "}" * 500
    body = json.dumps(QUESTION | {part: "deep"}).replace('"deep"', deep)
    settings = Settings(database="sqlite://", processes=1)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        headers = {"Content-Type": "application/json"}
        answer = client.post("/v1/plans", content=body, headers=headers)

    assert answer.status_code == 422
    assert answer.json()["errors"]
