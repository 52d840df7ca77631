"""Bytes on one chip: weights, gradients, optimizer state. Works on floats and arrays alike."""

from dataclasses import dataclass

import numpy as np

from costmodel.job import Job
from costmodel.model.ops.work import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Over how many ranks ZeRO shards dense and expert parameters; arrays or numbers >= 1."""

    dense: FloatArray
    expert: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticBytes:
    """Bytes of one chip that last for the whole run."""

    weights: FloatArray
    gradients: FloatArray
    optimizer: FloatArray


def static_bytes(
    dense: FloatArray, expert: FloatArray, shards: Shards, zero: FloatArray, job: Job
) -> StaticBytes:
    """Bytes of weights, gradients and optimizer state of one chip.

    ``w / S3 + g / S23 + o / S123`` per parameter, with w the working weights (2), g the
    accumulated gradients (4), o the FP32 main copy and moments (12 for Adam), and S the shard
    count where ZeRO reaches that stage (Rajbhandari et al., arXiv 1910.02054; with stage 1 this is
    Megatron's ``6 + 12 / d``). dense, expert: parameters on the chip; zero: stage 0 to 3.
    """

    def sharded(stage: int) -> FloatArray:
        on = zero >= stage
        return dense / np.where(on, shards.dense, 1.0) + expert / np.where(on, shards.expert, 1.0)

    return StaticBytes(
        weights=job.weight_bytes * sharded(3),
        gradients=job.gradient_bytes * sharded(2),
        optimizer=job.optimizer_bytes * sharded(1),
    )
