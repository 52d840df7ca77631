"""The job document: what one training step has to do."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, le=2**40)]


class JobDocument(BaseModel):
    """One training step's contract; `auto` leaves a choice to the search."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    global_batch_size: Count = Field(description="sequences per optimizer step")
    sequence_length: Count = Field(description="tokens per sequence")
    precision: Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4", "fp32"] = "bf16"
    optimizer: Literal["adam", "adamw", "sgd-momentum", "sgd"] = "adam"
    micro_batch_size: Count | Literal["auto"] = Field(
        default="auto", description="sequences per replica and micro-batch"
    )
    schedule: Annotated[str, Field(min_length=1, max_length=200)] = "auto"
    recompute: Literal["auto", "none", "selective", "full"] = "auto"
    vocab_divisor: Annotated[int, Field(ge=1, le=2**20)] = Field(
        default=128, description="the vocabulary is padded to a multiple of this times tp"
    )
    gradient_bytes: Literal[2, 4] = Field(
        default=4, description="bytes of one accumulated gradient element"
    )
    moe_imbalance: Annotated[float, Field(ge=1, le=1000)] = Field(
        default=1.0, description="tokens of the busiest expert rank over the mean"
    )
