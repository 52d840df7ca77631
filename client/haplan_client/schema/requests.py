"""Request bodies: what is asked of the service."""

import math
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
)

from haplan_client.schema.job import JobDocument

MAX_TIME_LIMIT_S = 60.0
MAX_DEPTH = 32


Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Source = Annotated[str, StringConstraints(min_length=1, max_length=8192)]
"""A name; on the command line also a path, and for a layout its inline form."""


def _sane(document: dict[str, Any]) -> dict[str, Any]:
    """Refuse what nests too deep and numbers that are not finite."""
    stack: list[tuple[object, int]] = [(document, 1)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"must nest at most {MAX_DEPTH} levels")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must hold finite numbers only")
        if isinstance(value, dict):
            stack += [(child, depth + 1) for child in cast("dict[str, object]", value).values()]
        elif isinstance(value, list):
            stack += [(child, depth + 1) for child in cast("list[object]", value)]
    return document


Document = Annotated[dict[str, Any], AfterValidator(_sane)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ConfigModel(_Body):
    """A model given by its Hugging Face configuration."""

    config: Document
    as_family: Name | None = Field(default=None, description="read an unknown type as this family")


class GraphModel(_Body):
    """A model given as a haplan graph."""

    graph: Document


def _kind_of_model(value: object) -> str:
    if isinstance(value, str):
        return "name"
    if isinstance(value, GraphModel):
        return "graph"
    return "graph" if isinstance(value, dict) and "graph" in value else "config"


Model = Annotated[
    Annotated[Source, Tag("name")]
    | Annotated[ConfigModel, Tag("config")]
    | Annotated[GraphModel, Tag("graph")],
    Discriminator(_kind_of_model),
]


class Question(_Body):
    """What is to be trained, on what, and how much of it a step."""

    model: Model = Field(description="a bundled name, a configuration or a graph")
    cluster: Source | Document = Field(description="a bundled name or a cluster document")
    job: JobDocument


class PlanRequest(Question):
    """Ask for the fastest layout."""

    target: Name | None = Field(default=None, description="what has to execute the plan")
    time_limit_s: float = Field(
        default=10.0,
        gt=0,
        le=MAX_TIME_LIMIT_S,
        strict=True,
        allow_inf_nan=False,
        description="seconds that the search may take",
    )
    baselines: bool = Field(default=False, strict=True, description="compare with every baseline")
    layout: Source | Document | None = Field(
        default=None, description="a layout of yours to compare with"
    )
    pins: list[Name] = Field(
        default_factory=list[str], max_length=64, description="what is fixed, as in `tp=4,8`"
    )
    exclude: list[Name] = Field(
        default_factory=list[str],
        max_length=4096,
        description="nodes that are out of use, by name or as `pool:index`",
    )
    objective: Literal["time", "cost", "chips"] = Field(
        default="time", description="step time, cost per token, or chips for a deadline"
    )
    tokens: float | None = Field(
        default=None,
        gt=0,
        strict=True,
        allow_inf_nan=False,
        description="to train on, for a deadline",
    )
    deadline_hours: float | None = Field(
        default=None,
        gt=0,
        strict=True,
        allow_inf_nan=False,
        description="hours that training may take",
    )


class EstimateRequest(Question):
    """Ask what one given layout costs."""

    layout: Source | Document = Field(
        description="a layout document, or inline as in `tp=8,pp=16,dp=12`"
    )
