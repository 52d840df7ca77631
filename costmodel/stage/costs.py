"""Builds the stage table: every block's costs under every option, then prefix sums over layers."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from costmodel.efficiency import DEFAULT_EFFICIENCY, Efficiency
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.values import StageOption
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.ops.work import FloatArray, local_size
from costmodel.stage.block_costs import BlockCosts, Setting, block_costs, setting_of
from costmodel.stage.local import local_shares
from costmodel.stage.table import StageTable, Terms


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
    costs = _costs_by_block(model, cluster, setting)
    none = np.zeros(len(options))
    ends = {part: [costs[n] for n in names] for part, names in _ends(model).items()}
    layers = _with_boundaries(model, costs, none)
    mtp_head = _shared_parameters(model, setting, model.epilogue, model.mtp)
    return StageTable(
        options=setting.options,
        layers=_prefix([entry.terms for entry in layers], none),
        embedding=_total([c.terms for c in ends["embedding"]], none),
        head=_total([c.terms for c in ends["head"]], none),
        mtp=_without(_total([c.terms for c in ends["mtp"]], none), mtp_head),
        transient_bytes=np.stack(
            [entry.transient_bytes + entry.gradient_bytes for entry in layers], axis=1
        ),
        embedding_transient_bytes=_peak(ends["embedding"], none),
        head_transient_bytes=_peak(ends["head"] + ends["mtp"], none)
        + _standing_gradients(layers, efficiency, none),
        tied_parameters=_shared_parameters(model, setting, model.prologue, model.epilogue),
        mtp_head_parameters=mtp_head,
        mtp_embedding_parameters=_shared_parameters(model, setting, model.prologue, model.mtp),
        boundary_bytes=_boundary_bytes(model, setting),
        fixed_bytes=none + efficiency.fixed_memory_bytes,
        capacity_bytes=np.array([cluster.pool(o.pool).usable_bytes for o in options]),
        num_chips=np.array([o.num_chips for o in options]),
        samples=np.array([o.samples for o in options]),
        pool_index=np.array(
            [next(i for i, p in enumerate(cluster.pools) if p.name == o.pool) for o in options]
        ),
    )


def _costs_by_block(model: ModelGraph, cluster: Cluster, setting: Setting) -> dict[str, BlockCosts]:
    """Costs of every block; the blocks of components run whole on every chip."""
    names = {name for component in model.components for name, _ in component.blocks}
    whole = setting
    if names:
        whole = setting_of(cluster, setting.job, _undivided(setting.options), setting.efficiency)
    return {
        name: block_costs(
            block,
            _tokens_per_sequence(model, block, setting.job),
            whole if name in names else setting,
        )
        for name, block in model.blocks.items()
    }


def _undivided(options: Sequence[StageOption]) -> tuple[StageOption, ...]:
    return tuple(
        replace(option, tp=1, cp=1, ep=1, etp=1, sequence_parallel=False) for option in options
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


def _shared_parameters(
    model: ModelGraph, setting: Setting, owners: Sequence[str], copies: Sequence[str]
) -> FloatArray:
    """Parameters per chip in the blocks ``copies`` that are weights of the blocks ``owners``."""
    local = local_shares(setting.options, setting.job, setting.job.sequence_length)
    shared = {tie.copy for tie in model.ties if tie.owner.split(".")[0] in owners}
    total = local.none
    for name in copies:
        block = model.blocks[name]
        for op in block.ops:
            for weight in op.weights:
                if f"{name}.{op.name}.{weight.name}" in shared:
                    total = total + local_size(op, block, weight.dims, local)
    return total


def _without(terms: Terms, parameters: FloatArray) -> Terms:
    return replace(terms, dense_parameters=terms.dense_parameters - parameters)


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
