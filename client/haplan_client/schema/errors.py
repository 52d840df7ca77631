"""Errors on the wire: `application/problem+json` (RFC 9457)."""

from pydantic import BaseModel, ConfigDict, Field


class ProblemError(BaseModel):
    """One violated rule."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    detail: str = Field(description="the whole message in one line")
    pointer: str = Field(default="", description="where in the request, as in `#/job/precision`")
    field: str = Field(default="", description="the field, where there is no pointer")
    rule: str = Field(default="", description="what is asked of the field")
    fix: str = Field(default="", description="what to write instead")


class Problem(BaseModel):
    """Why a request was refused."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    errors: tuple[ProblemError, ...] = ()
