"""Client of the haplan planner. The wire documents are in `haplan_client.schema`."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haplan_client.client import AsyncClient, Client
    from haplan_client.errors import (
        BusyError,
        HaplanClientError,
        InvalidRequestError,
        NotFoundError,
        OverdueError,
        ResponseError,
        ServerError,
        TransportError,
    )

__all__ = [
    "AsyncClient",
    "BusyError",
    "Client",
    "HaplanClientError",
    "InvalidRequestError",
    "NotFoundError",
    "OverdueError",
    "ResponseError",
    "ServerError",
    "TransportError",
]


def __getattr__(name: str) -> object:
    """Load the client, and with it httpx, only when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "client" if name.endswith("Client") else "errors"
    return getattr(import_module(f"{__name__}.{module}"), name)
