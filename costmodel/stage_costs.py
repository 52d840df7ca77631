"""Builds the stage table: every block's costs under every option, then prefix sums over layers."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from costmodel.block_costs import BlockCosts, Setting, block_costs, setting_of
from costmodel.efficiency import DEFAULT_EFFICIENCY, Efficiency
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.values import StageOption
from costmodel.local import local_shares
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.ops.work import FloatArray, local_size
from costmodel.stage_table import StageTable, Terms


def stage_table(
    model: ModelGraph,
    cluster: Cluster,
    job: Job,
    options: Sequence[StageOption],
    efficiency: Efficiency = DEFAULT_EFFICIENCY,
) -> StageTable:
    """Costs of every option for this model on this cluster.

    Raises UnknownNumberError when a chip lacks a number that the formulas need, UnknownNameError
    for an op kind without a cost file.
    """
    setting = setting_of(cluster, job, tuple(options), efficiency)
    costs = {
        name: block_costs(block, _tokens_per_sequence(model, block, job), setting)
        for name, block in model.blocks.items()
    }
    none = np.zeros(len(options))
    ends = {part: [costs[n] for n in names] for part, names in _ends(model).items()}
    layers = _with_boundaries(model, costs, none)
    return StageTable(
        options=setting.options,
        layers=_prefix([entry.terms for entry in layers], none),
        embedding=_total([c.terms for c in ends["embedding"]], none),
        head=_total([c.terms for c in ends["head"]], none),
        mtp=_total([c.terms for c in ends["mtp"]], none),
        transient_bytes=np.stack(
            [entry.transient_bytes + entry.gradient_bytes for entry in layers], axis=1
        ),
        embedding_transient_bytes=_peak(ends["embedding"], none),
        head_transient_bytes=_peak(ends["head"] + ends["mtp"], none)
        + _standing_gradients(layers, efficiency, none),
        tied_parameters=_tied_parameters(model, setting),
        boundary_bytes=_boundary_bytes(model, setting),
        fixed_bytes=none + efficiency.fixed_memory_bytes,
        capacity_bytes=np.array([cluster.pool(o.pool).usable_bytes for o in options]),
        num_chips=np.array([o.num_chips for o in options]),
        samples=np.array([o.samples for o in options]),
        pool_index=np.array(
            [next(i for i, p in enumerate(cluster.pools) if p.name == o.pool) for o in options]
        ),
    )


def _ends(model: ModelGraph) -> dict[str, tuple[str, ...]]:
    components = tuple(
        n for part in model.components for n, times in part.blocks for _ in range(times)
    )
    return {
        "embedding": model.prologue + components,
        "head": model.epilogue,
        "mtp": model.mtp,
    }


def _tokens_per_sequence(model: ModelGraph, block: Block, job: Job) -> int:
    """Tokens of one sequence in the block's stream; 0 for a component that does not say."""
    for component in model.components:
        if any(block.name == name for name, _ in component.blocks):
            return component.tokens_per_sequence or 0
    return model.streams[block.stream] or job.sequence_length


def _tied_parameters(model: ModelGraph, setting: Setting) -> FloatArray:
    """Parameters of the epilogue that are copies of first-stage weights, per chip."""
    local = local_shares(setting.options, setting.job, setting.job.sequence_length)
    copies = {tie.copy for tie in model.ties}
    total = local.none
    for name in model.epilogue:
        block = model.blocks[name]
        for op in block.ops:
            for weight in op.weights:
                if f"{name}.{op.name}.{weight.name}" in copies:
                    total = total + local_size(op, block, weight.dims, local)
    return total


def _boundary_bytes(model: ModelGraph, setting: Setting) -> FloatArray:
    local = local_shares(setting.options, setting.job, setting.job.sequence_length)
    block = model.blocks[model.layers[0]]
    width = block.elements(block.tensors[block.output])
    return setting.job.activation_bytes * local.stream_tokens * width


def _with_boundaries(
    model: ModelGraph, costs: dict[str, BlockCosts], none: FloatArray
) -> list[BlockCosts]:
    entries: list[BlockCosts] = []
    for index, name in enumerate(model.layers):
        before = [costs[n] for n in model.boundaries.get(index, ())]
        parts = [costs[name], *before]
        entries.append(
            BlockCosts(
                terms=_total([p.terms for p in parts], none),
                transient_bytes=np.max([p.transient_bytes for p in parts], axis=0),
                gradient_bytes=sum((p.gradient_bytes for p in parts), none),
                logit_bytes=none,
            )
        )
    return entries


def _total(parts: list[Terms], none: FloatArray) -> Terms:
    return Terms(**{f.name: sum((getattr(p, f.name) for p in parts), none) for f in fields(Terms)})


def _prefix(parts: list[Terms], none: FloatArray) -> Terms:
    def sums(name: str) -> FloatArray:
        columns = [none, *(getattr(part, name) for part in parts)]
        return np.cumsum(np.stack(columns, axis=1), axis=1)

    return Terms(**{f.name: sums(f.name) for f in fields(Terms)})


def _peak(parts: list[BlockCosts], none: FloatArray) -> FloatArray:
    sums = (p.transient_bytes + p.gradient_bytes + p.logit_bytes for p in parts)
    return np.max([none, *sums], axis=0)


def _standing_gradients(
    layers: list[BlockCosts], efficiency: Efficiency, none: FloatArray
) -> FloatArray:
    """What the layers' dummy weight gradients hold while the head runs on the same stage.

    One buffer for each weight shape outlives the layer that asked for it, so the largest layer's
    stand beside the head's own.
    """
    if not efficiency.fused_gradients:
        return none
    return np.max([none, *(layer.gradient_bytes for layer in layers)], axis=0)
