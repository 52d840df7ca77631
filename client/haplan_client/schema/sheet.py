"""The sheets of chips and links: every number with unit, source and confidence."""

from datetime import date
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from haplan_client.schema.cluster import Collective, Count, Document, Name, Precision, Topology

Confidence = Literal["high", "medium", "low"]
Note = Annotated[str, Field(max_length=2000)]


class Sourced(Document):
    """One number and where it comes from.

    The value is text with a unit, a plain fraction, `unknown` where nobody published it, or
    `unsupported` where the hardware cannot do it. `record` names the entry within the source.
    """

    value: str | float
    source: Note | None = None
    record: Note | None = None
    confidence: Confidence = "low"
    stated: Note | None = Field(
        default=None, description="a published figure whose direction is not stated"
    )
    note: Note | None = None


def _bare_word(value: object) -> object:
    return {"value": value} if value in ("unknown", "unsupported") else value


def _as_date(value: object) -> object:
    return date.fromisoformat(value) if isinstance(value, str) else value


Number = Annotated[Sourced, BeforeValidator(_bare_word)]
Day = Annotated[date, BeforeValidator(_as_date)]


class UsualLink(Document):
    """How chips of this kind are usually joined; a pool states its own."""

    link: Name
    domain_chips: Count | Literal["unknown"]
    note: Note | None = None


class ChipSheet(Document):
    """One kind of chip; the file's stem is its name."""

    title: Name
    vendor: Name
    architecture: Name | None = Field(
        default=None, description="chips of one architecture run the same kernels"
    )
    compiled: Day
    confidence: Confidence
    memory: Number
    memory_bandwidth: Number
    memory_fraction: Number
    peak: dict[Precision, Number]
    matmul_fraction: dict[Precision, Number]
    attention_fraction: dict[Literal["vendor", "portable"], Number] = Field(default={})
    power: Number
    scale_up: UsualLink
    scale_out: Note | None = None
    sources: list[Note]
    note: Note | None = None


class LinkSheet(Document):
    """One kind of link; the file's stem is its name."""

    title: Name
    kind: Literal["scale-up", "scale-out", "network"]
    fabric: Name = Field(description="links of one fabric can share a communicator")
    transport: Literal["scale-up", "verbs-ib", "verbs-roce", "tcp", "host-staged"]
    topology: Topology
    compiled: Day
    multicast: bool = False
    ports: Count = 1
    bandwidth: Number
    latency: Number
    efficiency: dict[Collective, Number]
    note: Note | None = None
