"""Errors on the wire: `application/problem+json` (RFC 9457)."""

from pydantic import BaseModel, ConfigDict, Field


class ProblemError(BaseModel):
    """One violated rule."""

    model_config = ConfigDict(extra="allow", frozen=True)

    detail: str
    pointer: str = Field(default="", description="JSON pointer to the field, as in `#/job`")


class Problem(BaseModel):
    """Why a request was refused."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    errors: tuple[ProblemError, ...] = ()
