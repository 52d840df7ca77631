"""A service in this process, reached by the clients without a socket."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import httpx

from haplan_client import AsyncClient, Client
from service.api.app import create_app
from service.api.settings import Settings

SETTINGS = Settings(database="sqlite://", processes=0, max_waiting=0, grace_s=0.1)
BASE_URL = "http://haplan.test"


@asynccontextmanager
async def open_transport(settings: Settings) -> AsyncGenerator[httpx.ASGITransport]:
    """A transport to an application that is up."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        yield httpx.ASGITransport(app, raise_app_exceptions=False)


@asynccontextmanager
async def open_async_client(settings: Settings = SETTINGS) -> AsyncGenerator[AsyncClient]:
    """An asynchronous client of an application that is up."""
    async with (
        open_transport(settings) as transport,
        AsyncClient(BASE_URL, transport=transport) as client,
    ):
        yield client


class Blocking(httpx.BaseTransport):
    """An asynchronous transport for a caller that waits."""

    def __init__(self, runner: asyncio.Runner, inner: httpx.AsyncBaseTransport) -> None:
        self._runner = runner
        self._inner = inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._runner.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._inner.handle_async_request(request)
        return httpx.Response(
            answer.status_code, headers=answer.headers, content=await answer.aread()
        )


@contextmanager
def open_client(settings: Settings = SETTINGS) -> Generator[Client]:
    """A blocking client of an application that is up."""
    context = open_transport(settings)
    with asyncio.Runner() as runner:
        transport = runner.run(context.__aenter__())
        try:
            with Client(BASE_URL, transport=Blocking(runner, transport)) as client:
                yield client
        finally:
            runner.run(context.__aexit__(None, None, None))
