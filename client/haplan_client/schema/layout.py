"""The layout document: pipelines of stages, as a plan holds them.

A stage of a plan also carries results (times, memory); a reader of layouts leaves them aside.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_PIPELINES = 1024
MAX_STAGES = 4096

Name = Annotated[str, Field(min_length=1, max_length=200)]
Degree = Annotated[int, Field(ge=1, le=2**24)]
Layer = Annotated[int, Field(ge=0, le=2**24)]
Zero = Annotated[int, Field(ge=0, le=2**24, description="0 to 3")]
"""Wider than what is legal, so that the rules on layouts can name all that is wrong at once."""
Range = Annotated[list[Layer], Field(min_length=2, max_length=2)]


class _Document(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class RecomputeDocument(_Document):
    """What the backward pass computes again."""

    mode: Name = Field(default="none", examples=["none", "selective", "full"])


class StageDocument(_Document):
    """One stage: which layers it holds, on how many chips of which pool, split how."""

    pool: Name
    nodes: list[Any] = Field(default=[], description="where a plan placed it")
    chunks: list[Range] = Field(
        min_length=1, max_length=MAX_STAGES, description="half-open layer ranges [first, last + 1]"
    )
    embedding: bool | None = Field(default=None, description="the first stage, if not given")
    head: bool | None = Field(default=None, description="the last stage, if not given")
    mtp: Annotated[int, Field(ge=0, le=1024)] | None = Field(
        default=None, description="multi-token-prediction blocks; all on the last stage by default"
    )
    tp: Degree = 1
    sequence_parallel: bool | None = Field(default=None, description="true where tp > 1 by default")
    cp: Degree = 1
    ep: Degree = 1
    etp: Degree = 1
    replicas: Degree = Field(default=1, description="data parallelism inside the stage")
    micro_batch_size: Degree = 1
    zero: Zero = 1
    recompute: RecomputeDocument = RecomputeDocument()
    offload: Name = Field(
        default="none",
        description="what is kept in the host's memory",
        examples=["none", "optimizer", "activations", "both"],
    )
    forward_s: float | None = None
    backward_s: float | None = None
    time: dict[str, Any] | None = None
    memory: dict[str, Any] | None = None
    in_flight: int | None = None


class PipelineDocument(_Document):
    """Stages that hold the model once, in `count` copies."""

    count: Degree = 1
    microbatches: Degree
    stages: list[StageDocument] = Field(min_length=1, max_length=MAX_STAGES)


class ScheduleDocument(_Document):
    """Order of the forward and backward passes."""

    kind: Name = "1f1b"
    virtual_stages: Degree = 1


class LayoutDocument(_Document):
    """All pipelines and their schedule."""

    pipelines: list[PipelineDocument] = Field(min_length=1, max_length=MAX_PIPELINES)
    schedule: ScheduleDocument = ScheduleDocument()


class InlineLayout(_Document):
    """A uniform layout in a line: `tp=8,pp=16,vp=2,cp=1,ep=1,dp=12,mbs=1,zero=1,recompute=none`.

    `dp` is the whole data-parallel degree.
    """

    tp: Degree = 1
    pp: Degree = 1
    vp: Degree = 1
    cp: Degree = 1
    ep: Degree = 1
    etp: Degree = 1
    dp: Degree = 1
    mbs: Degree | None = Field(default=None, description="the job's micro-batch size, or 1")
    zero: Zero = 1
    recompute: Name | None = Field(default=None, examples=["none", "selective", "full"])
    offload: Name = Field(default="none", examples=["none", "optimizer", "activations", "both"])
    sp: bool | None = Field(
        default=None, description="sequence parallelism; where tp > 1 by default"
    )
    schedule: Name | None = None
    pools: Name | None = Field(
        default=None, description="pools in order, as in a/b; all by default"
    )
    outer: Literal["pp", "dp"] = Field(
        default="pp", description="what is spread over the pools: stages or whole pipelines"
    )
    first: Degree | None = Field(default=None, description="layers of the first stage")
    last: Degree | None = Field(default=None, description="layers of the last stage")
    layers: Name | None = Field(
        default=None, description="`even`, or the layers of each stage as in 8/8/7/7"
    )
    layout: Annotated[str, Field(max_length=4096)] | None = Field(
        default=None, description="stages in Megatron's notation; stands last"
    )
