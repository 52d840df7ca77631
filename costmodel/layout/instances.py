"""Block instances of a stage, and the parameters that they hold.

A parameter's name is ``instance.op.weight``: ``layers.3.q.weight``, ``embedding.embedding.table``.
Tied weights are one parameter with the owner's name.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from costmodel.layout.values import Stage
from costmodel.model.graph import ModelGraph, Op, Weight

PROLOGUE, BOUNDARY, LAYER, EPILOGUE, MTP = "prologue", "boundary", "layer", "epilogue", "mtp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One block that runs: its unique name, its definition and its part of the model.

    index: layer index, or position in the prologue, epilogue or multi-token prediction.
    """

    name: str
    block: str
    part: str
    index: int


def stage_instances(graph: ModelGraph, stage: Stage) -> tuple[Instance, ...]:
    """Blocks of a stage in execution order (multi-token-prediction blocks last)."""
    return tuple(_instances(graph, stage))


def _instances(graph: ModelGraph, stage: Stage) -> Iterator[Instance]:
    if stage.embedding:
        yield from _whole(graph.prologue, PROLOGUE)
    for layer in stage.layers:
        for name in graph.boundaries.get(layer, ()):
            yield Instance(name=f"before.{layer}.{name}", block=name, part=BOUNDARY, index=layer)
        yield Instance(name=f"layers.{layer}", block=graph.layers[layer], part=LAYER, index=layer)
    if stage.head:
        yield from _whole(graph.epilogue, EPILOGUE)
    yield from _whole(graph.mtp[: stage.mtp], MTP)


def _whole(names: tuple[str, ...], part: str) -> Iterator[Instance]:
    for index, name in enumerate(names):
        yield Instance(name=name, block=name, part=part, index=index)


def parameter_name(graph: ModelGraph, instance: Instance, op: Op, weight: Weight) -> str:
    """Name of the parameter that a weight of an instance is; a tied copy has its owner's name."""
    name = f"{instance.name}.{op.name}.{weight.name}"
    owners = {tie.copy: tie.owner for tie in graph.ties}
    seen = {name}
    while name in owners and owners[name] not in seen:
        name = owners[name]
        seen.add(name)
    return name
