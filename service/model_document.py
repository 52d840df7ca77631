"""What `haplan model` says about a model."""

from collections import Counter
from typing import Any

from costmodel.model.document import graph_document
from costmodel.model.flops import flops_per_token
from costmodel.model.graph import ModelGraph
from costmodel.model.parameters import block_parameters, block_uses, parameter_counts

Document = dict[str, Any]

DEFAULT_SEQUENCE_LENGTH = 4096


def model_document(model: ModelGraph, *, sequence_length: int | None) -> Document:
    """Size and work of a model; by default at 4,096 tokens or the model's own limit, if less."""
    length = sequence_length or min(
        DEFAULT_SEQUENCE_LENGTH, model.max_sequence_length or DEFAULT_SEQUENCE_LENGTH
    )
    counts = parameter_counts(model)
    return {
        "schema": "haplan.model/v1",
        "name": model.name,
        "family": model.family,
        "layers": model.num_layers,
        "parameters": {
            "total": counts.total,
            "active": counts.active,
            "embedding": counts.embedding,
            "expert": counts.expert,
            "component": counts.component,
            "mtp": counts.mtp,
        },
        "sequence_length": length,
        "max_sequence_length": model.max_sequence_length,
        "flops_per_token": flops_per_token(model, length),
        "blocks": [
            {
                "name": name,
                "count": count,
                "parameters": block_parameters(model.blocks[name]),
                "ops": len(model.blocks[name].ops),
            }
            for name, count in (block_uses(model) + Counter(model.mtp)).items()
        ],
        "assumptions": list(model.assumptions),
    }


def graph_of(model: ModelGraph) -> Document:
    """The block graph, itself an accepted model."""
    return graph_document(model)
