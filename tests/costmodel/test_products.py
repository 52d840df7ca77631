"""Products of one input run side by side as one wide product."""

from dataclasses import replace

import numpy as np
import pytest

from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.layout.values import StageOption
from costmodel.model.graph import Block
from costmodel.model.ops.registry import work_of
from costmodel.model.ops.work import Gemm
from costmodel.stage.block_costs import block_costs, setting_of
from costmodel.stage.compute import gemm_time, op_time
from costmodel.stage.local import local_shares
from tests.costmodel.cases import problem

OPTION = StageOption(pool="p", tp=8)
CASE = problem()
SETTING = setting_of(CASE.cluster, CASE.job, (OPTION,), DEFAULT_EFFICIENCY)
LOCAL = local_shares([OPTION], CASE.job, 4096)


def gemm(n: float, columns: float | None = None) -> Gemm:
    m, k = np.array([4096.0]), np.array([4096.0])
    whole = None if columns is None else np.array([columns])
    return Gemm(m=m, n=np.array([n]), k=k, columns=whole)


def seconds(product: Gemm) -> float:
    return float(gemm_time(product, SETTING.rates, DEFAULT_EFFICIENCY).forward_s[0])


def test_parts_of_a_product_take_the_time_of_the_whole() -> None:
    parts = [gemm(n, columns=768.0) for n in (512.0, 128.0, 128.0)]

    assert sum(map(seconds, parts)) == pytest.approx(seconds(gemm(768.0)))
    assert sum(map(seconds, parts)) < sum(seconds(gemm(n)) for n in (512.0, 128.0, 128.0))


def alone_s(block: Block) -> float:
    """Forward of the block's ops, each by itself."""
    works = [work_of(op, block, LOCAL) for op in block.ops]
    times = [op_time(work, LOCAL, SETTING.rates, SETTING.efficiency) for work in works]
    return sum(float(time.forward_s[0]) for time in times)


def test_a_layer_joins_queries_keys_and_values_and_gate_and_up() -> None:
    block = CASE.model.blocks[CASE.model.layers[0]]
    d = block.dims
    h, f = float(d["hidden"]), d["ffn"] / 8
    q, kv = d["heads"] * d["qk_dim"] / 8, d["kv_heads"] * d["qk_dim"] / 8
    apart = sum(_time(n, h) for n in (q, kv, kv, f, f))
    joined = _time(q + 2 * kv, h) + _time(2 * f, h)
    device = replace(SETTING, efficiency=replace(SETTING.efficiency, host_op_s=0.0))
    terms = block_costs(block, 4096, device).terms
    compute = float(terms.forward_s[0] - terms.forward_tp_s[0])

    assert alone_s(block) - compute == pytest.approx(apart - joined)


def _time(n: float, k: float) -> float:
    return seconds(Gemm(m=LOCAL.tokens, n=np.array([n]), k=np.array([k])))
