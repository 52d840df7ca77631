"""What stages of a uniform layout keep in memory while their passes run."""

import numpy as np

from costmodel.batch.shapes import Shape
from costmodel.schedules.registry import schedule
from costmodel.stage.in_flight import most_counts
from costmodel.stage.table import FloatArray


def kept_bytes(
    kind: str, shape: Shape, microbatches: int, activation_bytes: FloatArray
) -> FloatArray:
    """Most bytes of activations of each stage, (N, p).

    activation_bytes: of one micro-batch in a chunk of each kind, (N, chunk kinds).
    """
    p, v = len(shape.stage_kinds), len(shape.chunk_kinds) // len(shape.stage_kinds)
    if v == 1:
        in_flight = schedule(kind).in_flight
        counts = np.array([in_flight(p, i, microbatches) for i in range(p)])
        return counts * activation_bytes[:, shape.chunk_kinds]
    by_place = activation_bytes[:, shape.chunk_kinds]
    most = [
        (by_place[:, i::p] @ most_counts(p, i, microbatches, v).T).max(axis=1) for i in range(p)
    ]
    return np.stack(most, axis=1)
