"""What becomes of an error: an exit code and an HTTP problem, from one table for both faces."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from costmodel.errors import (
    HaplanError,
    InputError,
    UnknownNameError,
    UnknownNumberError,
    UnsafeDocumentError,
    Violation,
)
from haplan_client.schema.errors import Problem, ProblemError


class ExitCode(IntEnum):
    """How a command ends; scripts rely on these numbers."""

    OK = 0
    POLICY = 1
    INPUT = 2
    INFEASIBLE = 3
    TIME_LIMIT = 4
    INTERNAL = 70


class PolicyError(HaplanError):
    """A check that the user asked for did not pass."""


class TimeLimitError(HaplanError):
    """The time limit came before any plan."""


class InfeasibleError(HaplanError):
    """There is nothing to work with: the plan says that no layout fits."""


class OverdueError(HaplanError):
    """Work took longer than it may and was stopped."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(
            f"the work did not end within {limit_s:g} s and was stopped; allow more time, or ask "
            "for less: merge alike pools, use a smaller cluster, or fix the micro-batch size, "
            "schedule and recompute of the job"
        )


class MissingExtraError(HaplanError):
    """A command needs an optional part of the distribution that is not installed."""


class TooManyBytesError(HaplanError):
    """A request body is over the limit."""


class NotFoundError(HaplanError):
    """Nothing is stored under this id."""


class BusyError(HaplanError):
    """All workers are taken and the queue is full, or a worker died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The two faces of one kind of error."""

    exit_code: ExitCode
    status: int
    name: str
    title: str

    @property
    def type(self) -> str:
        """The problem type of RFC 9457."""
        return f"urn:haplan:problem:{self.name}"


def _outcome(exit_code: ExitCode, status: int, name: str, title: str) -> Outcome:
    return Outcome(exit_code=exit_code, status=status, name=name, title=title)


TABLE: Mapping[type[HaplanError], Outcome] = MappingProxyType(
    {
        HaplanError: _outcome(ExitCode.INTERNAL, 500, "internal", "Something went wrong"),
        InputError: _outcome(ExitCode.INPUT, 422, "invalid-input", "The input breaks rules"),
        UnknownNameError: _outcome(ExitCode.INPUT, 422, "unknown-name", "A name is not known"),
        UnknownNumberError: _outcome(
            ExitCode.INPUT, 422, "unknown-number", "A needed number is not known"
        ),
        UnsafeDocumentError: _outcome(
            ExitCode.INPUT, 422, "unsafe-document", "The document was refused unread"
        ),
        PolicyError: _outcome(ExitCode.POLICY, 409, "policy", "A check did not pass"),
        InfeasibleError: _outcome(ExitCode.INFEASIBLE, 409, "infeasible", "No layout fits"),
        TimeLimitError: _outcome(
            ExitCode.TIME_LIMIT, 504, "time-limit", "The time limit came before any plan"
        ),
        OverdueError: _outcome(
            ExitCode.TIME_LIMIT, 504, "overdue", "The work took too long and was stopped"
        ),
        MissingExtraError: _outcome(
            ExitCode.INPUT, 501, "missing-extra", "A part that this needs is not installed"
        ),
        TooManyBytesError: _outcome(ExitCode.INPUT, 413, "too-large", "The body is too large"),
        NotFoundError: _outcome(ExitCode.INPUT, 404, "not-found", "There is no such thing"),
        BusyError: _outcome(ExitCode.INTERNAL, 503, "busy", "No worker is free"),
    }
)


def outcome_of(error: HaplanError) -> Outcome:
    """The table's entry for the nearest class of `error`."""
    return next(TABLE[cls] for cls in type(error).__mro__ if cls in TABLE)


def problem_of(error: HaplanError) -> Problem:
    """`error` as it is answered over HTTP and, under `error`, by `--format json`."""
    outcome = outcome_of(error)
    violations = error.violations if isinstance(error, InputError) else ()
    return Problem(
        type=outcome.type,
        title=outcome.title,
        status=outcome.status,
        detail=str(error),
        errors=tuple(problem_error(violation) for violation in violations),
    )


def problem_error(violation: Violation) -> ProblemError:
    """One violation; its pointer is a URI fragment into the request."""
    path = violation.field.split(" ")[0]
    return ProblemError(
        detail=str(violation),
        pointer=f"#{path}" if path.startswith("/") or not path else "",
        field=violation.field,
        rule=violation.rule,
        fix=violation.fix,
    )


def lines_of(error: HaplanError) -> list[str]:
    """`error` for a person: one line per violation."""
    if isinstance(error, InputError):
        return [str(violation) for violation in error.violations]
    return [str(error) or outcome_of(error).title]
