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
    return tuple(
        Instance(name=_name(block, part, index), block=block, part=part, index=index)
        for block, part, index in _runs(graph, stage)
    )


def stage_blocks(graph: ModelGraph, stage: Stage) -> tuple[str, ...]:
    """Names of the block definitions that a stage runs, each once."""
    return tuple(dict.fromkeys(block for block, _, _ in _runs(graph, stage)))


def _runs(graph: ModelGraph, stage: Stage) -> Iterator[tuple[str, str, int]]:
    """Block, part and index of every instance."""
    if stage.embedding:
        yield from _whole(graph.prologue, PROLOGUE)
    for layer in stage.layers:
        for name in graph.boundaries.get(layer, ()):
            yield name, BOUNDARY, layer
        yield graph.layers[layer], LAYER, layer
    if stage.head:
        yield from _whole(graph.epilogue, EPILOGUE)
    yield from _whole(graph.mtp[: stage.mtp], MTP)


def _whole(names: tuple[str, ...], part: str) -> Iterator[tuple[str, str, int]]:
    for index, name in enumerate(names):
        yield name, part, index


def _name(block: str, part: str, index: int) -> str:
    if part == BOUNDARY:
        return f"before.{index}.{block}"
    return f"layers.{index}" if part == LAYER else block


def parameter_name(graph: ModelGraph, instance: Instance, op: Op, weight: Weight) -> str:
    """Name of the parameter that a weight of an instance is; a tied copy has its owner's name."""
    name = f"{instance.name}.{op.name}.{weight.name}"
    owners = {tie.copy: tie.owner for tie in graph.ties}
    seen = {name}
    while name in owners and owners[name] not in seen:
        name = owners[name]
        seen.add(name)
    return name
