"""Builds the stage table: every block's costs under every option, then prefix sums over layers."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from costmodel import activations
from costmodel.compute import ChipRates, op_time
from costmodel.efficiency import DEFAULT_EFFICIENCY, Efficiency
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.values import StageOption
from costmodel.local import GroupArrays, chip_rates, group_arrays, local_shares
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.ops.registry import work_of
from costmodel.model.ops.work import FloatArray, Local, local_size
from costmodel.stage_communication import (
    context_parallel,
    expert_parallel,
    exposed,
    tensor_parallel,
)
from costmodel.stage_table import StageTable, Terms

LOGIT_KINDS = ("head", "classifier")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """Everything about the options that does not depend on the block; arrays of shape (O,)."""

    options: tuple[StageOption, ...]
    job: Job
    efficiency: Efficiency
    rates: ChipRates
    tp: GroupArrays
    cp: GroupArrays
    ep: GroupArrays
    etp: GroupArrays
    parallel: FloatArray
    full: FloatArray
    selective: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockCosts:
    terms: Terms
    transient_bytes: FloatArray
    logit_bytes: FloatArray


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
    setting = _setting(cluster, job, tuple(options), efficiency)
    costs = {
        name: _block_costs(block, _tokens_per_sequence(model, block, job), setting)
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
        transient_bytes=np.stack([entry.transient_bytes for entry in layers], axis=1),
        embedding_transient_bytes=_peak(ends["embedding"], none),
        head_transient_bytes=_peak(ends["head"] + ends["mtp"], none),
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


def _setting(
    cluster: Cluster, job: Job, options: tuple[StageOption, ...], efficiency: Efficiency
) -> _Setting:
    one = [1] * len(options)
    tp, ep = [o.tp for o in options], [o.ep for o in options]
    etp = [o.etp for o in options]
    return _Setting(
        options=options,
        job=job,
        efficiency=efficiency,
        rates=chip_rates(options, cluster, job),
        tp=group_arrays(options, cluster, tp, one),
        cp=group_arrays(options, cluster, [o.cp for o in options], tp),
        ep=group_arrays(options, cluster, ep, etp),
        etp=group_arrays(options, cluster, etp, one),
        parallel=np.array([float(o.sequence_parallel) for o in options]),
        full=np.array([float(o.recompute == "full") for o in options]),
        selective=np.array([float(o.recompute == "selective") for o in options]),
    )


def _tokens_per_sequence(model: ModelGraph, block: Block, job: Job) -> int:
    """Tokens of one sequence in the block's stream; 0 for a component that does not say."""
    for component in model.components:
        if any(block.name == name for name, _ in component.blocks):
            return component.tokens_per_sequence or 0
    return model.streams[block.stream] or job.sequence_length


def _block_costs(block: Block, length: int, setting: _Setting) -> _BlockCosts:
    local = local_shares(setting.options, setting.job, length)
    compute_forward, compute_backward, repeated, attention, flop = (local.none for _ in range(5))
    logits = local.none
    for op in block.ops:
        work = work_of(op, block, local)
        time = op_time(work, local, setting.rates, setting.efficiency)
        compute_forward = compute_forward + time.forward_s
        compute_backward = compute_backward + time.backward_s
        flop = flop + time.flop
        if op.kind in activations.DISCARDED_BY_SELECTIVE:
            repeated = repeated + time.memory_s
        if op.kind == "attention":
            attention = attention + time.forward_s
        if work.logits is not None:
            logits = logits + work.logits
    tp, cp, ep = _communication(block, local, setting, attention)
    again = setting.full
    dense, expert = parameters_per_chip(block, local)
    backward = compute_backward + again * compute_forward + setting.selective * repeated
    terms = Terms(
        forward_s=compute_forward + tp[0] + cp[0] + ep[0],
        backward_s=backward + sum((e[1] + again * e[0] for e in (tp, cp, ep)), local.none),
        forward_tp_s=tp[0],
        forward_cp_s=cp[0],
        forward_ep_s=ep[0],
        backward_tp_s=tp[1] + again * tp[0],
        backward_cp_s=cp[1] + again * cp[0],
        backward_ep_s=ep[1] + again * ep[0],
        flop=(3.0 + again) * flop,
        model_flop=3.0 * flop,
        activation_bytes=_kept(block, local, setting),
        dense_parameters=dense,
        expert_parameters=expert,
    )
    transient = activations.transient_bytes(block, local) + 2.0 * dense
    whole = activations.kept_bytes(block, local)
    transient = transient + again * np.maximum(whole - _kept(block, local, setting), 0.0)
    return _BlockCosts(
        terms=terms,
        transient_bytes=transient,
        logit_bytes=setting.efficiency.logit_bytes * logits,
    )


def _communication(
    block: Block, local: Local, setting: _Setting, attention_s: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], ...]:
    size = float(setting.job.activation_bytes)
    parts = exposed(
        tensor_parallel(block, local, setting.tp, size, setting.parallel),
        context_parallel(block, local, setting.cp, size),
        expert_parallel(block, local, setting.ep, setting.etp, size),
        attention_s,
        setting.efficiency,
    )
    return tuple((part.forward_s, part.backward_s) for part in parts)


def _kept(block: Block, local: Local, setting: _Setting) -> FloatArray:
    """Activation bytes under each option's recompute mode."""
    scale = setting.job.activation_bytes / 2.0
    none = activations.kept_bytes(block, local)
    selective = activations.kept_bytes(block, local, selective=True)
    full = np.minimum(activations.boundary_kept_bytes(block, local), none)
    kept = np.where(setting.full > 0, full, np.where(setting.selective > 0, selective, none))
    return scale * kept


def parameters_per_chip(block: Block, local: Local) -> tuple[FloatArray, FloatArray]:
    """Parameters of a block on one chip, (dense, expert), before ZeRO sharding.

    Split weights are divided by tp, the vocabulary is padded first; the weights of ``experts`` ops
    are divided by ep x etp; everything else is whole on every chip.
    """
    dense, expert = local.none, local.none
    for op in block.ops:
        for weight in op.weights:
            if op.kind == "experts":
                expert = expert + block.elements(weight.dims) / (local.ep * local.etp)
            else:
                dense = dense + local_size(op, block, weight.dims, local)
    return dense, expert


def _tied_parameters(model: ModelGraph, setting: _Setting) -> FloatArray:
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


def _boundary_bytes(model: ModelGraph, setting: _Setting) -> FloatArray:
    local = local_shares(setting.options, setting.job, setting.job.sequence_length)
    block = model.blocks[model.layers[0]]
    width = block.elements(block.tensors[block.output])
    return setting.job.activation_bytes * local.stream_tokens * width


def _with_boundaries(
    model: ModelGraph, costs: dict[str, _BlockCosts], none: FloatArray
) -> list[_BlockCosts]:
    entries: list[_BlockCosts] = []
    for index, name in enumerate(model.layers):
        before = [costs[n] for n in model.boundaries.get(index, ())]
        parts = [costs[name], *before]
        entries.append(
            _BlockCosts(
                terms=_total([p.terms for p in parts], none),
                transient_bytes=np.max([p.transient_bytes for p in parts], axis=0),
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


def _peak(parts: list[_BlockCosts], none: FloatArray) -> FloatArray:
    return np.max([none, *(p.transient_bytes + p.logit_bytes for p in parts)], axis=0)
