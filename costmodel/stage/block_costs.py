"""Costs of one block under every stage option: compute, communication, memory, parameters."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from costmodel.efficiency import Efficiency
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.values import StageOption
from costmodel.model.graph import Block, Op
from costmodel.model.ops.registry import work_of
from costmodel.model.ops.work import FloatArray, Local, Work, local_size
from costmodel.model.placement import conversions
from costmodel.stage import activations
from costmodel.stage.communication import (
    Exchange,
    context_parallel,
    expert_parallel,
    exposed,
    scaled_out,
    tensor_parallel,
)
from costmodel.stage.compute import ChipRates, op_time
from costmodel.stage.local import GroupArrays, chip_rates, group_arrays, local_shares
from costmodel.stage.table import Terms

NARROW = ("fp8", "mxfp8", "nvfp4")
"""Precisions whose products read quantised copies of their inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
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
    zero: FloatArray
    on_host: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCosts:
    """One block; arrays of shape (O,).

    transient_bytes: short-lived, ``logit_bytes`` and ``gradient_bytes`` apart. gradient_bytes:
    2-byte weight gradients on their way to the accumulated ones.
    """

    terms: Terms
    transient_bytes: FloatArray
    gradient_bytes: FloatArray
    logit_bytes: FloatArray


def setting_of(
    cluster: Cluster, job: Job, options: tuple[StageOption, ...], efficiency: Efficiency
) -> Setting:
    """Rates and degrees of every option. Raises UnknownNumberError for unpublished numbers."""
    one = [1] * len(options)
    tp, ep = [o.tp for o in options], [o.ep for o in options]
    etp = [o.etp for o in options]
    narrow = job.precision in NARROW
    rates = chip_rates(options, cluster, job)
    matmul = rates.matmul_flop_per_s * (efficiency.low_precision if narrow else 1.0)
    return Setting(
        options=options,
        job=job,
        efficiency=efficiency if narrow else replace(efficiency, quantise_bytes=0.0),
        rates=replace(rates, matmul_flop_per_s=matmul),
        tp=group_arrays(options, cluster, tp, one),
        cp=group_arrays(options, cluster, [o.cp for o in options], tp),
        ep=group_arrays(options, cluster, ep, etp),
        etp=group_arrays(options, cluster, etp, one),
        parallel=np.array([float(o.sequence_parallel) for o in options]),
        full=np.array([float(o.recompute == "full") for o in options]),
        selective=np.array([float(o.recompute == "selective") for o in options]),
        zero=np.array([float(o.zero) for o in options]),
        on_host=np.array([float(o.activations_on_host) for o in options]),
    )


def block_costs(block: Block, length: int, setting: Setting) -> BlockCosts:
    """Costs of one block whose stream has ``length`` tokens a sequence."""
    local, efficiency = local_shares(setting.options, setting.job, length), setting.efficiency
    work = _compute(block, local, setting)
    tp, cp, ep = _communication(block, local, setting, work.attention_s)
    again = setting.full
    kept = _kept(block, local, setting)
    dense, expert = parameters_per_chip(block, local)
    gathered = _gathered(dense + expert, setting)
    device_forward_s = work.forward_s + tp.forward_s + cp.forward_s + ep.forward_s
    device_backward_s = work.backward_s + tp.backward_s + cp.backward_s + ep.backward_s
    host_s = _host_ops(block, local, efficiency) * efficiency.host_op_s
    forward_s = at_least(device_forward_s, host_s)
    backward_s = at_least(device_backward_s, efficiency.host_backward * host_s)
    repeated_s = again * forward_s + setting.selective * work.selective_s
    terms = Terms(
        forward_s=_copying(forward_s, kept, setting),
        backward_s=_copying(backward_s + repeated_s, kept, setting),
        forward_tp_s=tp.forward_s,
        forward_cp_s=cp.forward_s,
        forward_ep_s=ep.forward_s,
        backward_tp_s=tp.backward_s + again * tp.forward_s,
        backward_cp_s=cp.backward_s + again * cp.forward_s,
        backward_ep_s=ep.backward_s + again * ep.forward_s,
        weight_gradient_s=_share(work.weight_gradient_s, device_backward_s) * backward_s,
        activation_bytes=(1.0 - setting.on_host) * kept,
        deferred_bytes=_whole(block, local, setting),
        dense_parameters=dense,
        expert_parameters=expert,
    )
    return BlockCosts(
        terms=terms,
        transient_bytes=_transient(block, local, setting, kept)
        + gathered
        + ON_THE_WAY * setting.on_host * kept,
        gradient_bytes=2.0 * (dense if efficiency.fused_gradients else _largest(block, local)),
        logit_bytes=efficiency.logit_bytes * work.logits,
    )


def _host_ops(block: Block, local: Local, efficiency: Efficiency) -> FloatArray:
    """Launches of a block's forward, in ops: its ops, and the collectives of its tp group."""
    ops = sum(efficiency.host_expert_ops if op.kind == "experts" else 1.0 for op in block.ops)
    collectives = efficiency.host_collective_ops * len(conversions(block))
    return ops + collectives * (local.tp > 1) + _score_ops(block, local)


SCORE_OPS = 8.0
"""Ops that one fused softmax of stored scores takes the place of: scale, mask, conversions to 32
bits and back, softmax (megatron/model/fused_softmax.py). vTrain's runs: 9 fitted."""

SCORE_BATCH = 4
"""The fused kernel works on this many heads of sequences at once, and on no other multiple."""


def _score_ops(block: Block, local: Local) -> FloatArray:
    """Ops added by attention cores whose scores no fused softmax kernel takes."""
    added = local.none
    for op in block.ops:
        if op.kind == "attention" and not op.attributes.get("fused", True):
            matrices = block.dims["heads"] / local.tp * local.tokens / local.sequence
            added = added + SCORE_OPS * (matrices % SCORE_BATCH > 0)
    return added


def at_least(device_s: FloatArray, host_s: float | FloatArray) -> FloatArray:
    """The longer of device and host time, and more where they are alike: ``(d^2 + h^2)^(1/2)``.

    The host runs ahead of the device, so that the slower of the two sets the pace; but a block
    mixes ops that wait for the one and for the other, and stalls pass from one to the other. Over
    published runs a square fits better than a fourth power (held out, tuned: 6.1 against 6.3 %).
    """
    return np.hypot(device_s, host_s)


ON_THE_WAY = 2.0
"""Blocks whose activations are still on the chip when they go to the host's memory: the one that
is copied and the one that runs, as with double buffers."""


def _copying(pass_s: FloatArray, kept: FloatArray, setting: Setting) -> FloatArray:
    """A pass beside which what is kept travels to the host's memory or back: the longer of both."""
    copy_s = setting.on_host * kept / setting.efficiency.host_copy_bytes_per_s
    return np.maximum(pass_s, copy_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compute:
    """Sums over a block's ops; arrays of shape (O,).

    selective_s: what selective recomputation repeats. attention_s: the attention cores, forward.
    weight_gradient_s: the part of the backward that makes weight gradients.
    """

    forward_s: FloatArray
    backward_s: FloatArray
    selective_s: FloatArray
    attention_s: FloatArray
    weight_gradient_s: FloatArray
    logits: FloatArray


def _compute(block: Block, local: Local, setting: Setting) -> _Compute:
    works = _side_by_side([(op, work_of(op, block, local)) for op in block.ops])
    times = [(op, op_time(work, local, setting.rates, setting.efficiency)) for op, work in works]

    def total(parts: Iterable[FloatArray]) -> FloatArray:
        return sum(parts, local.none)

    dropped = activations.DISCARDED_BY_SELECTIVE
    return _Compute(
        forward_s=total(time.forward_s for _, time in times),
        backward_s=total(time.backward_s for _, time in times),
        selective_s=total(time.memory_s for op, time in times if op.kind in dropped),
        attention_s=total(time.forward_s for op, time in times if op.kind == "attention"),
        weight_gradient_s=total(time.weight_gradient_s for _, time in times),
        logits=total(work.logits for _, work in works if work.logits is not None),
    )


def _side_by_side(works: list[tuple[Op, Work]]) -> list[tuple[Op, Work]]:
    """Products of one input with several weights run as one: queries, keys and values; gate and up.

    (``linear_qkv`` and ``linear_fc1`` of Megatron-LM; the pooled efficiencies were fitted so.)
    """
    columns: dict[tuple[str, bool], FloatArray] = {}
    for op, work in works:
        if op.kind == "linear":
            key = op.inputs[0], bool(op.tp_dims)
            columns[key] = columns.get(key, 0.0) + work.gemms[0].n

    def joined(op: Op, work: Work) -> Work:
        if op.kind != "linear":
            return work
        total = columns[op.inputs[0], bool(op.tp_dims)]
        return replace(work, gemms=(replace(work.gemms[0], columns=total),))

    return [(op, joined(op, work)) for op, work in works]


def _transient(block: Block, local: Local, setting: Setting, kept: FloatArray) -> FloatArray:
    """Short-lived bytes of one layer.

    One op's gradients, and under full recomputation the layer's activations made again.
    """
    again = setting.full * np.maximum(_whole(block, local, setting) - kept, 0.0)
    return activations.transient_bytes(block, local) + again


def _gathered(parameters: FloatArray, setting: Setting) -> FloatArray:
    """What stands whole on every chip while a block whose shards are elsewhere runs.

    With ZeRO 3 its weights and those fetched ahead for the next block, with ZeRO 2 and 3 its
    gradients before they are scattered, ``2 w [Z = 3] + 2 [Z >= 2]`` bytes a parameter (PyTorch's
    FSDP2, "explicit prefetching": https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html).
    """
    weights = 2.0 * setting.job.weight_bytes * (setting.zero >= 3)
    return parameters * (weights + 2.0 * (setting.zero >= 2))


def _whole(block: Block, local: Local, setting: Setting) -> FloatArray:
    """Activation bytes of a micro-batch without recomputation."""
    return setting.job.activation_bytes / 2.0 * activations.kept_bytes(block, local)


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    return part / np.maximum(whole, np.finfo(np.float64).tiny)


def _communication(
    block: Block, local: Local, setting: Setting, attention_s: FloatArray
) -> tuple[Exchange, Exchange, Exchange]:
    size = float(setting.job.activation_bytes)
    tp = tensor_parallel(block, local, setting.tp, size, setting.parallel)
    return exposed(
        scaled_out(tp, setting.tp, setting.efficiency),
        context_parallel(block, local, setting.cp, size),
        expert_parallel(block, local, setting.ep, setting.etp, size),
        attention_s,
        setting.efficiency,
    )


def _kept(block: Block, local: Local, setting: Setting) -> FloatArray:
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


def _largest(block: Block, local: Local) -> FloatArray:
    """Elements of the block's largest dense weight on one chip."""
    sizes = [
        local_size(op, block, weight.dims, local)
        for op in block.ops
        for weight in op.weights
        if op.kind != "experts"
    ]
    return np.max([local.none, *sizes], axis=0)
