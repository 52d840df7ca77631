"""The application factory: parts in, application out."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from service.api.body_limit import BodyLimit
from service.api.problems import PROBLEM_RESPONSES, add_problem_handlers
from service.api.routes import ROUTERS
from service.api.services import Services
from service.api.settings import Settings
from service.storage import PlanStore
from service.workers import Workers


def create_app(settings: Settings) -> FastAPI:
    """An application with `settings`; two of them share nothing."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        services = open_services(settings)
        app.state.services = services
        try:
            yield
        finally:
            services.workers.close()
            services.plans.close()

    app = FastAPI(
        title="haplan",
        version="1",
        summary="Plans non-uniform parallel training on mixed accelerator clusters.",
        lifespan=lifespan,
        responses=PROBLEM_RESPONSES,
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    add_problem_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    return app


def open_services(settings: Settings) -> Services:
    """What the routes work with."""
    return Services(
        settings=settings,
        plans=PlanStore.open(settings.database),
        workers=Workers(
            processes=settings.processes,
            max_waiting=settings.max_waiting,
            max_wait_s=settings.max_wait_s,
        ),
    )
