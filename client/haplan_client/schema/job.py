"""The job document: what one training step has to do."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MAX_BATCH = 2**24
MAX_TOKENS = 2**40


def _whole(value: object) -> object:
    """In JSON 8.0 is the integer 8."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = BeforeValidator(_whole)
Batch = Annotated[int, Field(ge=1, le=MAX_BATCH), Whole]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS), Whole]

Software = (
    Annotated[str, Field(min_length=1, max_length=200)]
    | Annotated[dict[str, Any], Field(max_length=100)]
)


class JobDocument(BaseModel):
    """One training step's contract; `auto` leaves a choice to the search."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    global_batch_size: Batch = Field(description="sequences per optimizer step")
    sequence_length: Tokens = Field(description="tokens per sequence")
    precision: Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4", "fp32"] = "bf16"
    optimizer: Literal["adam", "adamw", "sgd-momentum", "sgd"] = "adam"
    micro_batch_size: Batch | Literal["auto"] = Field(
        default="auto", description="sequences per replica and micro-batch"
    )
    schedule: Annotated[str, Field(min_length=1, max_length=200)] = "auto"
    recompute: Literal["auto", "none", "selective", "full"] = "auto"
    vocab_divisor: Annotated[int, Field(ge=1, le=2**20), Whole] = Field(
        default=128, description="the vocabulary is padded to a multiple of this times tp"
    )
    gradient_bytes: Annotated[Literal[2, 4], Whole] = Field(
        default=4, description="bytes of one accumulated gradient element"
    )
    software: Software = Field(
        default="auto",
        description="a bundled profile of the training stack, or constants of one's own by name",
    )
    moe_imbalance: Annotated[float, Field(ge=1, le=1000)] = Field(
        default=1.0, description="tokens of the busiest expert rank over the mean"
    )
