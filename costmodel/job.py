"""The training job: what a step has to do, independent of where it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PRECISION_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "mxfp8": 1, "nvfp4": 1}
"""Bytes per element of matrix operands; activations between ops stay at two bytes below bf16."""

PRECISIONS = tuple(PRECISION_BYTES)
OPTIMIZER_STATE_BYTES = {"adam": 12, "adamw": 12, "adam-16bit": 8, "sgd-momentum": 8, "sgd": 4}
"""Bytes per parameter of the FP32 main copy and moments (Adam 4 + 4 + 4;
``adam-16bit`` keeps both moments in 16 bits)."""

RECOMPUTE_MODES = ("none", "selective", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training step's contract.

    global_batch_size: sequences per optimizer step. sequence_length: tokens per sequence.
    precision: of the matrix operands. micro_batch_size, schedule, recompute: None leaves the choice
    to the search. vocab_divisor: the padded vocabulary is a multiple of this times tp
    (Megatron's ``make-vocab-size-divisible-by``; 1 only requires divisibility by tp).
    gradient_bytes: bytes per accumulated gradient element (Megatron keeps FP32).
    moe_imbalance: tokens of the busiest expert rank over the mean, >= 1. software: a bundled
    profile of the training stack, or constants in place of the default one's; None the default.
    """

    global_batch_size: int
    sequence_length: int
    precision: str = "bf16"
    optimizer: str = "adam"
    micro_batch_size: int | None = None
    schedule: str | None = None
    recompute: str | None = None
    vocab_divisor: int = 128
    gradient_bytes: int = 4
    moe_imbalance: float = 1.0
    software: str | Mapping[str, float | bool] | None = field(default=None, hash=False)

    @property
    def weight_bytes(self) -> int:
        """Bytes per parameter of the working weights."""
        return 4 if self.precision == "fp32" else 2

    @property
    def activation_bytes(self) -> int:
        """Bytes per element of an activation handed between ops."""
        return 4 if self.precision == "fp32" else 2

    @property
    def optimizer_bytes(self) -> int:
        """Bytes per parameter of optimizer state (main weights and moments), shardable.

        With FP32 weights the working copy is the main copy, so 4 bytes fewer.
        """
        return OPTIMIZER_STATE_BYTES[self.optimizer] - (4 if self.precision == "fp32" else 0)
