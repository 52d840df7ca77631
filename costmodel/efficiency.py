"""Shares of hardware peaks that software reaches: the defaults of an unnamed training stack.

Every number is an effective value of one pooled least-squares fit over published training runs
(about 3,500 rows; the equations it was fitted with are those of this package). They are defaults
of the *software*; what belongs to a chip or link is in ``cluster_profiles``.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Constants of the time and memory formulas.

    gemm: share of the chip's best measured matrix rate at infinite size.
    gemm_half_rows, gemm_half_columns: rows, and columns or depth, at which that share halves.
    expert_gemm, expert_half_rows: the same for grouped expert products.
    attention: share of the best matrix rate for a fused attention kernel at infinite length;
        attention_half_length: tokens at which it halves.
    attention_backward: backward over forward time (2.5 x the arithmetic, and less efficient).
    memory_traffic: measured over counted bytes of the ops bound by memory bandwidth.
    head_bytes_per_logit: memory traffic of the cross entropy.
    expert_permute: memory traffic of dispatching, in multiples of 8 bytes x top-k x hidden.
    tp_exposed, ep_exposed: share of that communication not hidden behind compute.
    cp_hidden_attention_share: share of attention time that can hide context-parallel traffic;
        cp_exposed_always: share of that traffic never hidden.
    sync_overlap: share of one micro-batch's backward (forward) under which the gradient
        reduce-scatter (parameter all-gather) hides.
    sharded_weights_overlap, sharded_weights_exposed: ZeRO-3 gathers hide under this share of
        compute, and this share of them never hides.
    p2p_exposed_latency_s: added to each transfer between stages.
    optimizer_bytes_per_parameter: memory traffic of the update.
    step_overhead_s: fixed cost of one step; microbatch_overhead_s: of one micro-batch.
    fused_gradients: the product of a weight's gradient adds to the accumulated one itself; its
        2-byte dummy result, one per weight shape, lives on (Transformer Engine). Otherwise every
        gradient is made and added, one at a time.
    logit_bytes: memory per logit on the last stage. fixed_memory_bytes: context, workspaces and
        communicator buffers of one chip.
    """

    gemm: float = 0.92
    gemm_half_rows: float = 393.0
    gemm_half_columns: float = 127.0
    expert_gemm: float = 0.71
    expert_half_rows: float = 125.0
    attention: float = 0.56
    attention_half_length: float = 256.0
    attention_backward: float = 3.0
    memory_traffic: float = 1.3
    head_bytes_per_logit: float = 16.0
    expert_permute: float = 1.8
    tp_exposed: float = 0.85
    ep_exposed: float = 0.65
    cp_hidden_attention_share: float = 0.7
    cp_exposed_always: float = 0.1
    sync_overlap: float = 0.8
    sharded_weights_overlap: float = 0.85
    sharded_weights_exposed: float = 0.21
    p2p_exposed_latency_s: float = 2e-5
    optimizer_bytes_per_parameter: float = 34.0
    step_overhead_s: float = 0.010
    microbatch_overhead_s: float = 0.0
    fused_gradients: bool = True
    logit_bytes: float = 8.0
    fixed_memory_bytes: float = 1e9


DEFAULT_EFFICIENCY = Efficiency()
