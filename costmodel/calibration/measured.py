"""The measured step time of a case, from whatever rate its source prints."""

from costmodel.calibration.case import Case
from costmodel.calibration.convention import Convention
from costmodel.hardware.values import Cluster
from costmodel.model.flops import flops_per_token, keys_seen, op_forward_flop
from costmodel.model.graph import ModelGraph

ADAPTER_SHARE = 2.0 / 3.0
"""FLOPs of a step with frozen weights over those of a whole one: the weights' gradients are left
out, a third of a product's forward and backward."""


def measured_step_s(
    case: Case, model: ModelGraph, cluster: Cluster, how: Convention, *, batch_stated: bool
) -> float | None:
    """Seconds of one optimizer step, None when the case measured no rate.

    In this order: the stated time (if the batch is stated too); batch x sequence over tokens/s;
    the source's FLOPs (``step_flop``) over its TFLOP/s; over its MFU x the 16-bit peak or that of
    the precision.
    """
    chips = case.hardware.need("n_chips")
    tokens = float(case.parallel.need("gbs") * case.model.need("seq"))
    stated, rate = (
        case.measured.number("step_time_s"),
        case.measured.number("tokens_per_s_per_chip"),
    )
    if stated and (batch_stated or not rate):
        return stated
    if rate:
        return tokens / (rate * chips)
    flop = step_flop(case, model, how) * tokens
    achieved = case.measured.number("tflops_per_chip")
    if achieved:
        return flop / (achieved * 1e12 * chips)
    utilisation = case.measured.number("mfu")
    if utilisation:
        return flop / (utilisation * cluster.pools[0].chip.peak("bf16") * chips)
    return None


def step_flop(case: Case, model: ModelGraph, how: Convention) -> float:
    """FLOPs of a token as the source counts them.

    Causal attention at half or in full; recomputed layers once more (``recompute_flop``).
    """
    length = case.model.need("seq")
    whole = flops_per_token(model, length)
    if not how.causal_flop:
        whole += 3.0 * _masked_flop(model, length)
    if how.recompute_flop and case.parallel.text("recompute").startswith("full"):
        head = 3.0 * sum(
            op_forward_flop(op, block, keys=0.0)
            for block in model.blocks.values()
            for op in block.ops
            if op.kind == "head"
        )
        whole += (whole - head) / 3.0
    return whole


def model_flop_per_token(model: ModelGraph, length: int, *, adapters: bool) -> float:
    """Model FLOPs of a token, causal attention at half."""
    return flops_per_token(model, length) * (ADAPTER_SHARE if adapters else 1.0)


def _masked_flop(model: ModelGraph, length: int) -> float:
    """Forward FLOPs of a token's attention cores: what the whole square adds to the causal half."""
    total = 0.0
    for name in model.layers:
        block = model.blocks[name]
        for op in block.ops:
            if op.kind == "attention":
                keys = keys_seen(op, length, causal=False) - keys_seen(op, length)
                total += op_forward_flop(op, block, keys=keys)
    return total
