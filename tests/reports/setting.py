"""Models and clusters of the reports, and the verdict on a layout."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from costmodel.errors import InputError
from costmodel.estimation import Estimate, estimate
from costmodel.hardware.values import Cluster
from costmodel.layout.read import load_layout
from costmodel.model.graph import ModelGraph
from costmodel.model.read import load_model
from costmodel.problem import Problem
from tests.layout.problems import (
    DENSE_CONFIG,
    SPARSE_CONFIG,
    cluster,
    model,
    pool_document,
    problem,
)

named = cache(load_model)
"""A bundled model by name."""


def dense(**config: Any) -> ModelGraph:
    """A small llama-like model with some keys changed."""
    return model(DENSE_CONFIG, **config)


def sparse(**config: Any) -> ModelGraph:
    """A small model with 16 experts, latent attention and one MTP block."""
    return model(SPARSE_CONFIG, **config)


def chips(number: int, chip: str = "nvidia-a100-sxm-80g", **pool: Any) -> Cluster:
    """One pool of so many chips, eight a node (or fewer)."""
    size = min(number, pool.pop("chips_per_node", 8))
    document = pool_document("a", number // size, chip=chip, chips_per_node=size, **pool)
    return cluster(document)


def asked(graph: ModelGraph, where: Cluster | int, **job: Any) -> Problem:
    """The problem of training a model on a cluster or on so many chips."""
    return problem(graph, chips(where) if isinstance(where, int) else where, **job)


Source = str | Mapping[str, object]


def refusals(where: Problem, source: Source) -> list[str]:
    """What is wrong with a layout; empty when it is legal."""
    try:
        load_layout(where, source)
    except InputError as error:
        return [str(violation) for violation in error.violations]
    return []


def is_legal(where: Problem, source: Source) -> bool:
    """Whether the layout is legal."""
    return refusals(where, source) == []


def estimated(where: Problem, source: Source) -> Estimate:
    """The estimate of a legal layout."""
    return estimate(where.model, where.cluster, where.job, source)


def layer_counts(where: Problem, source: Source) -> list[int]:
    """Layers of each stage of the first pipeline."""
    return [stage.num_layers for stage in load_layout(where, source).pipelines[0].stages]


def document(layers: list[int], microbatches: int, **stage: Any) -> dict[str, Any]:
    """One pipeline with so many layers on each stage, all alike otherwise."""
    edges = [sum(layers[:i]) for i in range(len(layers) + 1)]
    stages = [
        {"pool": "a", "chunks": [[edges[i], edges[i + 1]]], **stage} for i in range(len(layers))
    ]
    return {"pipelines": [{"microbatches": microbatches, "stages": stages}]}
