"""Per-chip shares and rates of many stage options, as arrays."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from costmodel.hardware.values import Cluster, Pool
from costmodel.job import Job
from costmodel.layout.values import StageOption
from costmodel.model.ops.work import FloatArray, Local
from costmodel.model.placement import Collective
from costmodel.network.groups import group_link
from costmodel.stage.compute import ChipRates

ATTENTION_PRECISION = {"fp32": "fp32", "fp16": "fp16"}
"""Attention cores run in bf16 below 16 bits."""

OPERAND_BYTES = {"fp32": 4.0, "fp8": 1.0, "mxfp8": 1.0, "nvfp4": 0.5}
"""Bytes of an element that a product reads; 2 in other precisions."""

SAME_UNITS = {"fp16": "bf16", "bf16": "fp16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupArrays:
    """Rates of one group kind (tp, cp or ep) of each option and collective; shape (O,)."""

    ranks: FloatArray
    bytes_per_s: dict[Collective, FloatArray]
    latency_s: FloatArray
    nodes: FloatArray


def local_shares(options: Sequence[StageOption], job: Job, sequence_length: int) -> Local:
    """Tokens and degrees of each option for a block whose stream has ``sequence_length`` tokens."""
    tp = _array(o.tp for o in options)
    cp = _array(o.cp for o in options)
    tokens = _array(o.micro_batch_size for o in options) * sequence_length / cp
    parallel = np.array([o.sequence_parallel for o in options])
    return Local(
        tokens=tokens,
        stream_tokens=np.where(parallel, tokens / tp, tokens),
        sequence=float(sequence_length),
        tp=tp,
        cp=cp,
        ep=_array(o.ep for o in options),
        etp=_array(o.etp for o in options),
        imbalance=job.moe_imbalance,
        vocab_divisor=job.vocab_divisor,
    )


def chip_rates(options: Sequence[StageOption], cluster: Cluster, job: Job) -> ChipRates:
    """Achievable rates of each option's chip. Raises UnknownNumberError for unpublished numbers."""
    pools = {o.pool: cluster.pool(o.pool) for o in options}
    attention = ATTENTION_PRECISION.get(job.precision, "bf16")
    matmul = {n: matmul_flop_per_s(p, job.precision) for n, p in pools.items()}
    core = {n: matmul_flop_per_s(p, attention) for n, p in pools.items()}
    memory = {n: p.chip.streaming_bytes_per_s() for n, p in pools.items()}
    return ChipRates(
        matmul_flop_per_s=_array(matmul[o.pool] for o in options),
        attention_flop_per_s=_array(core[o.pool] for o in options),
        vendor_attention=_array(pools[o.pool].chip.attention_share("vendor") for o in options),
        portable_attention=_array(pools[o.pool].chip.attention_share("portable") for o in options),
        memory_bytes_per_s=_array(memory[o.pool] for o in options),
        operand_bytes=OPERAND_BYTES.get(job.precision, 2.0),
        gradient_bytes=float(job.gradient_bytes),
    )


def matmul_flop_per_s(pool: Pool, precision: str) -> float:
    """What large matrix products reach on one chip, FLOP/s. Raises UnknownNumberError.

    BF16 and FP16 run on the same units at one rate, where their peaks are equal; their shares of
    it come from different benchmarks, so the better one counts for both.
    """
    rate, chip, other = pool.matmul_flop_per_s(precision), pool.chip, SAME_UNITS.get(precision)
    measured = pool.efficiency is not None or pool.flop_per_s is not None
    if other is None or measured or other in chip.unsupported:
        return rate
    peak, share = chip.peak(precision), chip.matmul_fraction.get(other)
    if share is None or chip.peak_flop_per_s.get(other) != peak:
        return rate
    return max(rate, peak * share)


def group_arrays(
    options: Sequence[StageOption], cluster: Cluster, ranks: Sequence[int], strides: Sequence[int]
) -> GroupArrays:
    """Rates of one group per option: ``ranks`` chips, ``strides`` apart, in the option's pool."""
    rows = list(zip((o.pool for o in options), ranks, strides, strict=True))
    number = {row: i for i, row in enumerate(dict.fromkeys(rows))}
    index = [number[row] for row in rows]
    groups = [(cluster.pool(name), n, apart) for name, n, apart in number]
    links = {c: [group_link(*group, c) for group in groups] for c in Collective}
    sums = links[Collective.ALL_REDUCE]
    return GroupArrays(
        ranks=_array(ranks),
        bytes_per_s={c: _array(link.bytes_per_s for link in links[c])[index] for c in Collective},
        latency_s=_array(link.latency_s for link in sums)[index],
        nodes=_array(link.nodes for link in sums)[index],
    )


def _array(values: Iterable[float]) -> FloatArray:
    return np.array(list(values), dtype=np.float64)
