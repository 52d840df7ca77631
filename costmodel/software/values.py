"""What a training stack reaches of the hardware, and how it runs and measures a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Constants of the time and memory formulas: effective values of the *software*.

    What belongs to a chip or link is in its sheet; the numbers here, with their sources, are in
    ``cluster_profiles/software``.

    gemm: share of the chip's best measured matrix rate at infinite size. gemm_fixed_s: time of a
        product besides its arithmetic. gemm_traffic: share of its operands' memory traffic that
        the arithmetic does not hide.
    expert_gemm, expert_fixed_s: the same for grouped expert products, the time for each expert.
    low_precision: rate of products below 16 bits over what the share above gives them.
    quantise_bytes: memory traffic per element of such a product's input.
    attention: share of the rate that the chip's best attention kernel reaches, at infinite length;
        attention_half_length: tokens at which it halves. vendor_attention: the kernels are those
        of the chip's vendor, else those written for many chips.
    attention_backward: backward over forward time (2.5 x the arithmetic, and less efficient).
    memory_traffic: measured over counted bytes of the ops bound by memory bandwidth.
        score_traffic: the same of attention kernels that store their scores.
    head_bytes_per_logit: memory traffic of the cross entropy.
    expert_permute: traffic of sorting tokens by expert and back, over 8 bytes x top-k x hidden.
    host_op_s: host time to launch one op of a block in a forward; host_backward: its backward
        over that; host_expert_ops: ops that a layer of experts counts as; host_collective_ops: ops
        that launching one collective of a tp group counts as.
    tp_exposed, ep_exposed: share of that communication not hidden behind compute.
    tp_scale_out: measured over computed seconds of tensor-parallel traffic that leaves a scale-up
        domain.
    cp_hidden_attention_share: share of attention time that can hide context-parallel traffic;
        cp_exposed_always: share of that traffic never hidden.
    sync_traffic: measured over computed seconds of gradient sums and parameter gathers.
    sync_overlap: share of one micro-batch's backward (forward) under which the gradient
        reduce-scatter (parameter all-gather) hides; sync_exposed: share of it that never hides.
    gather_piece_s: time for each layer and rank where updated parameters are gathered slice by
        slice, 0 where they are gathered as flat buffers.
    sharded_weights_overlap, sharded_weights_exposed: ZeRO-3 gathers hide under this share of
        compute, and this share of them never hides.
    p2p_exposed: share of the bytes between stages that the next pass waits for.
    p2p_exposed_latency_s: added to each transfer between stages.
    optimizer_bytes_per_parameter: memory traffic of the update.
    host_copy_bytes_per_s: between a chip and its host's memory, one direction.
        host_update_bytes_per_s: of the host's memory for the share of one chip.
    step_overhead_s: fixed cost of one step; microbatch_overhead_s: of one micro-batch.
    backward_products: products of a backward over those of its forward: 2, or 1 where weights are
        frozen. trained_share: share of the parameters whose gradients are summed and updated.
    fused_gradients: the product of a weight's gradient adds to the accumulated one itself; its
        2-byte dummy result, one per weight shape, lives on (Transformer Engine). Otherwise every
        gradient is made and added, one at a time.
    logit_bytes: memory per logit on the last stage. fixed_memory_bytes: context, workspaces and
        communicator buffers of one chip.
    """

    gemm: float
    gemm_fixed_s: float
    gemm_traffic: float
    expert_gemm: float
    expert_fixed_s: float
    low_precision: float
    quantise_bytes: float
    attention: float
    attention_half_length: float
    vendor_attention: bool
    attention_backward: float
    memory_traffic: float
    score_traffic: float
    head_bytes_per_logit: float
    expert_permute: float
    host_op_s: float
    host_backward: float
    host_expert_ops: float
    host_collective_ops: float
    tp_exposed: float
    tp_scale_out: float
    ep_exposed: float
    cp_hidden_attention_share: float
    cp_exposed_always: float
    sync_traffic: float
    sync_overlap: float
    sync_exposed: float
    gather_piece_s: float
    sharded_weights_overlap: float
    sharded_weights_exposed: float
    p2p_exposed: float
    p2p_exposed_latency_s: float
    optimizer_bytes_per_parameter: float
    host_copy_bytes_per_s: float
    host_update_bytes_per_s: float
    step_overhead_s: float
    microbatch_overhead_s: float
    backward_products: float
    trained_share: float
    fused_gradients: bool
    logit_bytes: float
    fixed_memory_bytes: float


CONSTANTS = {field.name: field.type for field in fields(Efficiency)}
"""Names of the constants that are one number or switch each, with their types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareProfile:
    """A training stack.

    efficiency: constants of the formulas. runs: how it runs, completes and measures a model, by
    the names of ``costmodel.calibration.convention.Convention``. fitted: names of the constants
    that were fitted to published runs of the stack.
    """

    name: str
    title: str
    efficiency: Efficiency
    runs: Mapping[str, object] = field(hash=False)
    fitted: tuple[str, ...] = ()
