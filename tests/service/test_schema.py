"""Requests made from the service's own description: none may crash it or leave the description."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from service import usecases
from service.api.app import create_app
from service.api.settings import Settings
from tests.service.fixtures import plan_document, returning

APP = create_app(Settings(database="sqlite://", processes=0))
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APP)


@SCHEMA.parametrize()  # pyright: ignore[reportUnknownMemberType, reportUntypedFunctionDecorator]
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_service_keeps_to_its_description(
    case: schemathesis.Case[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usecases, "make_plan", returning(plan_document()))
    monkeypatch.setattr(usecases, "make_estimate", returning(plan_document()), raising=False)
    case.call_and_validate()  # pyright: ignore[reportUnknownMemberType]
