"""What the routes work with, and how they get it."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from service.api.settings import Settings
from service.storage import PlanStore
from service.workers import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Settings, storage and workers of one application."""

    settings: Settings
    plans: PlanStore
    workers: Workers


def services_of(request: Request) -> Services:
    """The services of the application that got the request."""
    return cast("Services", request.app.state.services)


ServicesOf = Annotated[Services, Depends(services_of)]
