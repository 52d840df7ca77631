"""What can go wrong between the caller and the service.

HaplanClientError
├── TransportError          the service could not be reached or did not answer in time
└── ResponseError           the service answered with a problem
    ├── InvalidRequestError     the request breaks rules; all of them are in `violations`
    ├── NotFoundError           nothing is stored under this id
    └── ServerError             the service failed
        ├── BusyError               no worker is free; ask again later
        └── OverdueError            no plan in time; allow more, or ask for less
"""

from collections.abc import Mapping
from types import MappingProxyType

from haplan_client.schema.errors import Problem, ProblemError


class HaplanClientError(Exception):
    """Base of everything that this package raises."""


class TransportError(HaplanClientError):
    """The service could not be reached or did not answer in time."""


class ResponseError(HaplanClientError):
    """The service answered with a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        lines = [error.detail for error in problem.errors]
        super().__init__("\n".join([problem.title, *(lines or [problem.detail])]).strip())

    @property
    def violations(self) -> tuple[ProblemError, ...]:
        """The broken rules, one by one."""
        return self.problem.errors


class InvalidRequestError(ResponseError):
    """The request breaks rules."""


class NotFoundError(ResponseError):
    """Nothing is stored under this id."""


class ServerError(ResponseError):
    """The service failed."""


class BusyError(ServerError):
    """No worker is free; ask again later."""


class OverdueError(ServerError):
    """There was no plan in time; allow more time, or ask for less."""


KINDS: Mapping[int, type[ResponseError]] = MappingProxyType(
    {404: NotFoundError, 503: BusyError, 504: OverdueError}
)
"""Statuses with an error of their own."""


def error_for(problem: Problem) -> ResponseError:
    """The typed error of a problem."""
    other = InvalidRequestError if problem.status < 500 else ServerError
    return KINDS.get(problem.status, other)(problem)
