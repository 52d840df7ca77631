"""What stages of a cell cost, to the last term that the evaluator counts, as plain arrays.

Copies are alike and every stage lies in one pool, so gradient sums, parameter gathers and the
update are linear in the parameters of a stage. A compiled loop can then score a layout as the
evaluator does.
"""

from typing import NamedTuple

import numpy as np

from costmodel.layout.values import StageOption
from costmodel.model.placement import Collective
from costmodel.stage.table import StageTable, Terms
from planner.arrays import FloatArray, IntArray
from planner.families.cells import Cell
from planner.families.links import Links
from planner.instance import Instance, arrays

FORWARD, BACKWARD, STATIC, KEPT, TRANSIENT, REDUCE, GATHER, UPDATE = range(8)
"""Columns of what layers and ends add to a stage: seconds, and bytes of one chip."""


class Costs(NamedTuple):
    """Costs of R options over L layers; a NamedTuple because compiled functions take it.

    layers: prefix sums over layers of the columns above, (8, R, L + 1); those of ``TRANSIENT`` are
    the buffers of each layer. first, last: what embedding, and head with multi-token prediction,
    add, (R, 8). shared: what a stage with both has once only, (R, 8). room: bytes of a chip
    that are free for all this, (R,). latency: seconds of the reduction and of the gather of a
    stage's layers that do not depend on their size, (R, 2). hop: seconds of a hand-over from one
    option to the next, (R, R). pool: of each option; chips: of one stage, (R,). exposed: share of
    the backward (forward) under which a reduction (gather) hides, and share of it that never
    hides. overhead: seconds that every step, and every micro-batch's forward, takes besides.
    """

    layers: FloatArray
    first: FloatArray
    last: FloatArray
    shared: FloatArray
    room: FloatArray
    latency: FloatArray
    hop: FloatArray
    pool: IntArray
    chips: IntArray
    exposed: FloatArray
    overhead: FloatArray


class Sums(NamedTuple):
    """Seconds of reduction, gather and update: per dense and expert parameter, (3, 2, R), and of
    each group whatever its size, (2, 2, R)."""

    slope: FloatArray
    latency: FloatArray


def costs_of(links: Links, instance: Instance, cell: Cell) -> Costs:
    """The costs of a cell's options, in the order of its rows."""
    x, rows, table = arrays(instance, cell.copies), cell.rows, instance.table
    efficiency, sums = links.problem.efficiency, sums_of(links, instance, cell)
    bytes_each = x.dense_bytes[rows], x.expert_bytes[rows]
    layers = _columns(table.layers, rows, bytes_each, sums)
    layers[TRANSIENT, :, :-1] = x.transient[rows]
    layers[TRANSIENT, :, -1] = 0.0
    first = _end((table.embedding,), rows, bytes_each, sums)
    first[TRANSIENT] = x.first_transient[rows]
    last = _end((table.head, table.mtp), rows, bytes_each, sums)
    last[TRANSIENT] = x.last_transient[rows]
    shared = _shared(table, rows, bytes_each[0], sums)
    return Costs(
        layers=np.ascontiguousarray(layers),
        first=np.ascontiguousarray(first.T),
        last=np.ascontiguousarray(last.T),
        shared=shared,
        room=x.budget[rows],
        latency=_layer_latency(table, rows, sums),
        hop=hop_seconds(links, table, rows),
        pool=np.ascontiguousarray(table.pool_index[rows]),
        chips=np.ascontiguousarray(table.num_chips[rows]),
        exposed=np.array([efficiency.sync_overlap, efficiency.sync_exposed]),
        overhead=np.array([efficiency.step_overhead_s, efficiency.microbatch_overhead_s]),
    )


def sums_of(links: Links, instance: Instance, cell: Cell) -> Sums:
    """What gradient sums, parameter gathers and updates of the cell's options take."""
    slope, latency = np.zeros((3, 2, len(cell.rows))), np.zeros((2, 2, len(cell.rows)))
    options = [instance.table.options[int(row)] for row in cell.rows]
    for r, option in enumerate(options):
        for part, (ranks, stride) in enumerate(_rings(option, cell.copies)):
            slope[:, part, r], latency[:, part, r] = _option_sums(links, option, ranks, stride)
    return Sums(slope=slope, latency=latency)


def _rings(option: StageOption, copies: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """(ranks, stride) of the groups that sum a dense and an expert weight."""
    grid = option.ep * option.etp
    dense = copies * option.replicas * option.cp, option.tp
    return dense, (copies * option.num_chips // grid, grid)


def _option_sums(
    links: Links, option: StageOption, ranks: int, stride: int
) -> tuple[tuple[float, float, float], tuple[float, float]]:
    """Seconds per parameter of reduction, gather and update, and the fixed ones of the first two.

    Without ZeRO both halves carry gradients and hide under the backward alone.
    """
    job, efficiency = links.problem.job, links.problem.efficiency
    gathered = job.weight_bytes if option.zero > 0 else job.gradient_bytes
    slow = efficiency.sync_traffic * efficiency.trained_share
    down_s, down = links.half((option.pool, ranks, stride, Collective.REDUCE_SCATTER))
    up_s, up = links.half((option.pool, ranks, stride, Collective.ALL_GATHER))
    rate = links.problem.cluster.pool(option.pool).chip.streaming_bytes_per_s()
    updated = efficiency.optimizer_bytes_per_parameter * efficiency.trained_share
    update = updated / (ranks if option.zero > 0 else 1) / rate
    reduce, gather = slow * down * job.gradient_bytes, slow * up * gathered
    fixed = slow * down_s, slow * up_s
    if option.zero == 0:
        return (reduce + gather, 0.0, update), (sum(fixed), 0.0)
    return (reduce, gather, update), fixed


def _columns(
    terms: Terms, rows: IntArray, bytes_each: tuple[FloatArray, FloatArray], sums: Sums
) -> FloatArray:
    """The columns of layers or of an end block: (8, R, ...)."""
    dense, expert = terms.dense_parameters[rows], terms.expert_parameters[rows]
    wide = (slice(None), *(None,) * (dense.ndim - 1))
    static = dense * bytes_each[0][wide] + expert * bytes_each[1][wide]
    times = [dense * slope[0][wide] + expert * slope[1][wide] for slope in sums.slope]
    kept = terms.activation_bytes[rows]
    return np.stack(
        [terms.forward_s[rows], terms.backward_s[rows], static, kept, np.zeros_like(kept), *times]
    )


def _end(
    blocks: tuple[Terms, ...],
    rows: IntArray,
    bytes_each: tuple[FloatArray, FloatArray],
    sums: Sums,
) -> FloatArray:
    """The columns of end blocks together, each with groups of its own: (8, R)."""
    total = np.zeros((8, len(rows)))
    for terms in blocks:
        total += _columns(terms, rows, bytes_each, sums)
        for k, latency in zip((REDUCE, GATHER), sums.latency, strict=True):
            total[k] += latency[0] * (terms.dense_parameters[rows] > 0)
            total[k] += latency[1] * (terms.expert_parameters[rows] > 0)
    return total


def _shared(table: StageTable, rows: IntArray, dense_bytes: FloatArray, sums: Sums) -> FloatArray:
    """What the weights cost that both ends hold, with the fixed seconds of their group, (R, 8)."""
    dense = table.tied_parameters[rows] + table.mtp_embedding_parameters[rows]
    total = np.zeros((len(rows), 8))
    total[:, STATIC] = dense * dense_bytes
    for column, slope in zip((REDUCE, GATHER, UPDATE), sums.slope, strict=True):
        total[:, column] = dense * slope[0]
    for column, latency in zip((REDUCE, GATHER), sums.latency, strict=True):
        total[:, column] += latency[0] * (dense > 0)
    return total


def _layer_latency(table: StageTable, rows: IntArray, sums: Sums) -> FloatArray:
    """Fixed seconds of the groups that every stage has: of experts only where all layers have some.

    Shape (R, 2).
    """
    everywhere = (np.diff(table.layers.expert_parameters[rows], axis=1) > 0).all(axis=1)
    return np.ascontiguousarray((sums.latency[:, 0] + sums.latency[:, 1] * everywhere).T)


def hop_seconds(links: Links, table: StageTable, rows: IntArray) -> FloatArray:
    """Seconds of one hand-over from option r to option q, (R, R); see ``transfer_seconds``."""
    received, chips, k = table.boundary_bytes[rows], table.num_chips[rows], table.pool_index[rows]
    sent = received[None, :] * chips[None, :] / chips[:, None]
    volume = np.maximum(received[None, :], sent)
    pair = k[:, None], k[None, :]
    return links.hop_base[pair] + links.hop_slope[pair] * volume
