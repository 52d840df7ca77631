"""Refuses a body that is too large, before it is held in memory."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.problems import problem_response
from service.outcomes import TooManyBytesError, problem_of


class BodyLimit:
    """ASGI middleware: counts what arrives and answers 413 when it is too much."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        messages = None if self._announces_too_much(scope) else await self._read(receive)
        if messages is None:
            await self._refuse(scope, receive, send)
            return
        await self._app(scope, _replay(messages, receive), send)

    def _announces_too_much(self, scope: Scope) -> bool:
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        return length.isdigit() and int(length[:20]) > self._max_bytes

    async def _read(self, receive: Receive) -> list[Message] | None:
        """The messages that make up the body, or None when they hold too much."""
        messages: list[Message] = []
        size = 0
        more = True
        while more:
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
            if size > self._max_bytes:
                return None
        return messages

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = TooManyBytesError(f"a body may have at most {self._max_bytes} bytes")
        response = problem_response(problem_of(error))
        response.headers["Connection"] = "close"
        await response(scope, receive, send)


def _replay(messages: list[Message], receive: Receive) -> Receive:
    """Give the messages already read, then what else comes."""
    waiting = iter(messages)

    async def again() -> Message:
        return next(waiting, None) or await receive()

    return again
