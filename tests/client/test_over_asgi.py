"""Both clients against the real service: what is asked, what is answered, what is raised."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from haplan_client import (
    AsyncClient,
    BusyError,
    HaplanClientError,
    InvalidRequestError,
    NotFoundError,
    OverdueError,
    ServerError,
)
from haplan_client.protocol import ANSWER_MARGIN_S
from service import usecases
from service.api.settings import Settings
from tests.client.asgi import open_async_client, open_client
from tests.service.fixtures import PLAN_ID, QUESTION, Document, failing, plan_document, returning

LAYOUT = "tp=4,pp=4,dp=4"


Call = tuple[str, tuple[Any, ...], Document]
"""A method, its arguments and its options."""
Ask = Callable[[list[Call]], list[Any]]


def ask_blocking(calls: list[Call]) -> list[Any]:
    with open_client() as client:
        return [getattr(client, name)(*args, **options) for name, args, options in calls]


def ask_async(calls: list[Call]) -> list[Any]:
    async def scenario() -> list[Any]:
        async with open_async_client() as client:
            return [await getattr(client, name)(*args, **options) for name, args, options in calls]

    return asyncio.run(scenario())


BOTH = pytest.mark.parametrize("ask", [ask_blocking, ask_async], ids=["blocking", "async"])


def call(method: str, *arguments: Any, **options: Any) -> Call:
    return method, arguments, options


@BOTH
def test_a_plan_is_made_kept_listed_and_found(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecases, "make_plan", returning(plan_document()))
    made, found, listed = ask(
        [
            call("plan", **QUESTION, time_limit_s=1, target="runner"),
            call("get_plan", PLAN_ID),
            call("list_plans"),
        ]
    )

    assert made == found == plan_document()
    assert [item["id"] for item in listed] == [PLAN_ID]


@BOTH
def test_an_estimate_is_what_the_library_says(ask: Ask) -> None:
    [estimate] = ask([call("estimate", **QUESTION, layout=LAYOUT)])

    assert estimate["fits"] is True
    assert estimate["prediction"]["step_time_s"] > 0
    assert len(estimate["stages"]) == 4


@BOTH
def test_the_catalogue_is_read(ask: Ask) -> None:
    chips, clusters = ask([call("chips"), call("clusters")])

    assert "nvidia-h100-sxm-80g" in {chip["name"] for chip in chips}
    assert "hybrid-64" in {cluster["name"] for cluster in clusters}


@BOTH
def test_all_faults_arrive_typed_and_placed(ask: Ask) -> None:
    wrong = QUESTION | {"model": "lama3-8b", "job": {"global_batch_size": 0}}
    with pytest.raises(InvalidRequestError) as caught:
        ask([call("plan", **wrong)])

    pointers = {violation.pointer for violation in caught.value.violations}
    assert pointers == {"#/model", "#/job/global_batch_size", "#/job/sequence_length"}
    assert "llama3-8b" in str(caught.value)


@BOTH
@pytest.mark.parametrize(
    ("method", "arguments", "kind"),
    [
        ("get_plan", ("sha256:" + "0" * 64,), NotFoundError),
        ("get_plan", ("x",), InvalidRequestError),
        ("get_plan", ("../../healthz",), HaplanClientError),
    ],
)
def test_plans_that_are_not_there(
    ask: Ask, method: str, arguments: tuple[str, ...], kind: type[HaplanClientError]
) -> None:
    with pytest.raises(kind):
        ask([call(method, *arguments)])


@BOTH
def test_a_bug_of_the_service_is_its_error(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecases, "make_plan", failing(ZeroDivisionError("secret")))
    with pytest.raises(ServerError) as caught:
        ask([call("plan", **QUESTION)])

    assert caught.value.problem.status == 500
    assert "secret" not in str(caught.value)


def sleeping(seconds: float) -> Callable[[object], Document]:
    def make_plan(_request: object) -> Document:
        time.sleep(seconds)
        return plan_document()

    return make_plan


@BOTH
def test_a_plan_that_takes_too_long_is_overdue(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecases, "make_plan", sleeping(1))
    with pytest.raises(OverdueError, match="allow more time"):
        ask([call("plan", **QUESTION, time_limit_s=0.1)])


def test_many_callers_at_once_get_answers_or_are_told_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usecases, "make_plan", sleeping(0.3))
    settings = Settings(database="sqlite://", processes=0, max_waiting=1)

    async def scenario() -> list[Any]:
        async with open_async_client(settings) as client:
            return await asyncio.gather(*(attempt(client) for _ in range(5)))

    async def attempt(client: AsyncClient) -> str:
        try:
            return (await client.plan(**QUESTION))["id"]
        except BusyError as error:
            return type(error).__name__

    answers = asyncio.run(scenario())
    assert sorted(answers) == ["BusyError"] * 3 + [PLAN_ID] * 2


def test_the_client_waits_longer_than_the_service_works() -> None:
    settings = Settings()

    longest = settings.max_wait_s + settings.grace_s + settings.estimate_limit_s
    assert longest < ANSWER_MARGIN_S
