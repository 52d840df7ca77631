"""Communication inside a stage: tensor, context and expert parallel traffic of one block."""

from dataclasses import dataclass

import numpy as np

from costmodel.efficiency import Efficiency
from costmodel.model.graph import Block, Op
from costmodel.model.ops.work import FloatArray, Local
from costmodel.model.placement import Collective, Conversion, conversions
from costmodel.model.placement import collectives as steps_of
from costmodel.network import collectives
from costmodel.stage.local import GroupArrays


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Seconds of one kind of traffic of one block before overlap; arrays of shape (O,)."""

    forward_s: FloatArray
    backward_s: FloatArray


def tensor_parallel(
    block: Block, local: Local, group: GroupArrays, element_bytes: float, parallel: FloatArray
) -> Exchange:
    """Collectives of every change of placement in the block, with and without sequence parallelism.

    parallel: 1 where the option uses sequence parallelism, shape (O,). The head's own reductions
    over the vocabulary (three numbers a token) are counted too.
    """
    forward, backward = local.none, local.none
    for sequence_parallel, weight in ((True, parallel), (False, 1.0 - parallel)):
        if not weight.any():
            continue
        for conversion in conversions(block):
            ahead, back = steps_of(conversion, sequence_parallel=sequence_parallel)
            forward = forward + weight * _steps_s(ahead, conversion, local, group, element_bytes)
            backward = backward + weight * _steps_s(back, conversion, local, group, element_bytes)
    for op in block.ops:
        if op.kind == "head":
            forward = forward + _seconds(Collective.ALL_REDUCE, 12.0 * local.tokens, group)
    return Exchange(forward_s=forward, backward_s=backward)


def _steps_s(
    steps: tuple[Collective, ...],
    conversion: Conversion,
    local: Local,
    group: GroupArrays,
    element_bytes: float,
) -> FloatArray:
    payload = element_bytes * local.tokens * conversion.elements_per_token
    return sum((_seconds(step, payload, group) for step in steps), local.none)


def _seconds(step: Collective, payload_bytes: FloatArray, group: GroupArrays) -> FloatArray:
    return collectives.seconds(
        step, payload_bytes, group.ranks, group.bytes_per_s[step], group.latency_s
    )


def context_parallel(
    block: Block, local: Local, group: GroupArrays, element_bytes: float
) -> Exchange:
    """Keys and values travel around the cp group: gathered forward; gathered and reduced backward.

    Payload: k and v of the whole sequence on one chip (heads split over tp). Ring attention moves
    the same bytes (Liu et al., arXiv 2310.01889).
    """
    forward, backward = local.none, local.none
    for op in block.ops:
        if op.kind == "attention":
            payload = (
                element_bytes * local.tokens * local.cp * _key_value_elements(op, block, local)
            )
            gather = _seconds(Collective.ALL_GATHER, payload, group)
            scatter = _seconds(Collective.REDUCE_SCATTER, payload, group)
            forward, backward = forward + gather, backward + gather + scatter
    return Exchange(forward_s=forward, backward_s=backward)


def _key_value_elements(op: Op, block: Block, local: Local) -> FloatArray:
    size = sum(block.elements(block.tensors[name]) for name in op.inputs[1:3])
    return size / local.tp


def expert_parallel(
    block: Block,
    local: Local,
    dispatch: GroupArrays,
    inside: GroupArrays,
    element_bytes: float,
) -> Exchange:
    """Dispatch and combine of routed tokens: two all-to-alls forward, two backward.

    A chip sends its stream tokens k times: ``tokens k h``. Tokens for several experts of one node
    travel once: of k copies, nodes (1 - (1 - 1/nodes)^k) leave (expected distinct nodes), as
    DeepEP does. With etp each chip gathers its group's tokens before, and scatters after.
    """
    none = local.none
    total = none
    for op in block.ops:
        if op.kind != "experts":
            continue
        copies = float(op.attributes["top_k"])
        hidden = block.dims[op.weights[0].dims[-1]]
        payload = element_bytes * local.stream_tokens * copies * hidden * local.imbalance
        sent = np.where(
            dispatch.nodes > 1,
            payload * dispatch.nodes * (1.0 - (1.0 - 1.0 / dispatch.nodes) ** copies) / copies,
            payload,
        )
        once = _seconds(Collective.ALL_TO_ALL, sent, dispatch)
        gather = _seconds(Collective.ALL_GATHER, payload * inside.ranks, inside)
        scatter = _seconds(Collective.REDUCE_SCATTER, payload * inside.ranks, inside)
        total = total + 2.0 * once + gather + scatter
    return Exchange(forward_s=total, backward_s=total)


def scaled_out(tp: Exchange, group: GroupArrays, efficiency: Efficiency) -> Exchange:
    """Tensor-parallel traffic, as slow as measured where its group spans several domains."""
    return _scaled(tp, np.where(group.nodes > 1, efficiency.tp_scale_out, 1.0))


def exposed(
    tp: Exchange, cp: Exchange, ep: Exchange, attention_s: FloatArray, efficiency: Efficiency
) -> tuple[Exchange, Exchange, Exchange]:
    """The parts not hidden behind compute.

    tp and ep: a constant share. cp: what exceeds a share of the attention time, and always a tenth
    (pooled fits over published runs). attention_s: forward attention seconds of the block.
    """
    hidden = efficiency.cp_hidden_attention_share * attention_s
    least = efficiency.cp_exposed_always
    return (
        _scaled(tp, efficiency.tp_exposed),
        Exchange(
            forward_s=np.maximum(cp.forward_s - hidden, least * cp.forward_s),
            backward_s=np.maximum(cp.backward_s - 2.0 * hidden, least * cp.backward_s),
        ),
        _scaled(ep, efficiency.ep_exposed),
    )


def _scaled(exchange: Exchange, share: float | FloatArray) -> Exchange:
    return Exchange(forward_s=exchange.forward_s * share, backward_s=exchange.backward_s * share)
