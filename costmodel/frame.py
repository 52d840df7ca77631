"""A layout seen through a stage table: what each stage costs and holds, as plain numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from costmodel import holders as holding
from costmodel.layout.values import Layout, Stage, StageOption
from costmodel.stage.table import FloatArray, StageTable, Terms

Index = tuple[int, int]
"""(pipeline, stage)."""

_EMBEDDING, _HEAD, _MTP = -1, -2, -3
"""``Segment.start`` of the runs of end blocks, which are no layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCosts:
    """One stage's row of the table with its layers and end blocks added up.

    Seconds and bytes are per micro-batch on one chip, parameters per chip before ZeRO.
    """

    forward_s: float
    backward_s: float
    tp_s: float
    cp_s: float
    ep_s: float
    forward_ep_s: float
    backward_ep_s: float
    weight_gradient_s: float
    activation_bytes: float
    deferred_bytes: float
    dense: float
    expert: float
    transient_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one stage keeps of one segment on one chip: dense and expert parameters."""

    dense: float
    expert: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Everything that evaluating one layout reads from the table.

    segments: runs of layers with the same holders, then the embedding and the head.
    held: parameters of each segment on one chip of each of its holders, in their order.
    """

    layout: Layout
    table: StageTable
    rows: Mapping[Index, int]
    stages: Mapping[Index, Stage]
    costs: Mapping[Index, StageCosts]
    segments: tuple[holding.Segment, ...]
    held: tuple[tuple[Holding, ...], ...]


def frame(table: StageTable, option_rows: Mapping[StageOption, int], layout: Layout) -> Frame:
    """Looks the layout's stages up in the table. Raises KeyError for an option it lacks."""
    stages = {(d, i): s for d, p in enumerate(layout.pipelines) for i, s in enumerate(p.stages)}
    rows = {index: option_rows[stage.option] for index, stage in stages.items()}
    segments = (*holding.segments(layout), *_end_segments(stages))
    costs = costs_of(table, list(rows.values()), list(stages.values()))
    return Frame(
        layout=layout,
        table=table,
        rows=rows,
        stages=stages,
        costs=dict(zip(stages, costs, strict=True)),
        segments=segments,
        held=tuple(
            tuple(_held(table, rows[index], stages[index], segment) for index in segment.holders)
            for segment in segments
        ),
    )


def _end_segments(stages: Mapping[Index, Stage]) -> tuple[holding.Segment, ...]:
    holders = {
        _EMBEDDING: tuple(index for index, stage in stages.items() if stage.embedding),
        _HEAD: tuple(index for index, stage in stages.items() if stage.head),
        _MTP: tuple(index for index, stage in stages.items() if stage.mtp > 0),
    }
    return tuple(
        holding.Segment(start=kind, stop=kind, holders=held) for kind, held in holders.items()
    )


def stage_costs(table: StageTable, row: int, stage: Stage) -> StageCosts:
    """Costs of one stage from the table. A stage with both tied ends keeps that weight once."""
    return costs_of(table, [row], [stage])[0]


def costs_of(table: StageTable, rows: Sequence[int], stages: Sequence[Stage]) -> list[StageCosts]:
    """Costs of stages, each from its row of the table."""
    at, total = np.array(rows), _totals(table, rows, stages)
    extra = [sum(_extra_parameters(table, r, s).values()) for r, s in zip(at, stages, strict=True)]
    transient = [_transient_bytes(table, r, s) for r, s in zip(at, stages, strict=True)]
    columns = {
        "forward_s": total("forward_s"),
        "backward_s": total("backward_s"),
        "tp_s": total("forward_tp_s") + total("backward_tp_s"),
        "cp_s": total("forward_cp_s") + total("backward_cp_s"),
        "ep_s": total("forward_ep_s") + total("backward_ep_s"),
        "forward_ep_s": total("forward_ep_s"),
        "backward_ep_s": total("backward_ep_s"),
        "weight_gradient_s": total("weight_gradient_s"),
        "activation_bytes": total("activation_bytes"),
        "deferred_bytes": total("deferred_bytes"),
        "dense": total("dense_parameters") + np.array(extra),
        "expert": total("expert_parameters"),
        "transient_bytes": np.array(transient),
    }
    names, values = tuple(columns), zip(*(c.tolist() for c in columns.values()), strict=True)
    return [StageCosts(**dict(zip(names, own, strict=True))) for own in values]


def _totals(
    table: StageTable, rows: Sequence[int], stages: Sequence[Stage]
) -> Callable[[str], FloatArray]:
    """Sums a term over the layers and end blocks of each stage, (stages,)."""
    at = np.array(rows)
    chunks = [(i, a, b) for i, stage in enumerate(stages) for a, b in stage.chunks]
    of, start, stop = np.array(chunks, dtype=np.int64).reshape(-1, 3).T
    ends = [
        (np.array(held, dtype=np.float64), terms)
        for held, terms in (
            ([stage.embedding for stage in stages], table.embedding),
            ([stage.head for stage in stages], table.head),
            ([stage.mtp > 0 for stage in stages], table.mtp),
        )
        if any(held)
    ]

    def total(name: str) -> FloatArray:
        prefix: FloatArray = getattr(table.layers, name)
        layers = prefix[at[of], stop] - prefix[at[of], start]
        beside = sum((held * getattr(terms, name)[at] for held, terms in ends), np.zeros(len(at)))
        return np.bincount(of, layers, len(at)) + beside

    return total


def _extra_parameters(table: StageTable, row: int, stage: Stage) -> dict[int, float]:
    """Dense parameters of each end run beyond its table row: shared weights once, copies added.

    The table's multi-token depth leaves out the head's weight, which its stage normally has.
    """
    extra = {_EMBEDDING: 0.0, _HEAD: 0.0, _MTP: 0.0}
    if stage.embedding and stage.head:
        extra[_HEAD] = -float(table.tied_parameters[row])
    if stage.mtp > 0:
        head = 0.0 if stage.head else float(table.mtp_head_parameters[row])
        shared = float(table.mtp_embedding_parameters[row]) if stage.embedding else 0.0
        extra[_MTP] = head - shared
    return extra


def _transient_bytes(table: StageTable, row: int, stage: Stage) -> float:
    peaks = [float(table.transient_bytes[row, a:b].max()) for a, b in stage.chunks if b > a]
    if stage.embedding:
        peaks.append(float(table.embedding_transient_bytes[row]))
    if stage.head:
        peaks.append(float(table.head_transient_bytes[row]))
    return max(peaks, default=0.0)


def _end_terms(table: StageTable) -> dict[int, Terms]:
    return {_EMBEDDING: table.embedding, _HEAD: table.head, _MTP: table.mtp}


def _held(table: StageTable, row: int, stage: Stage, segment: holding.Segment) -> Holding:
    ends = _end_terms(table)
    if segment.start in ends:
        terms = ends[segment.start]
        extra = _extra_parameters(table, row, stage)[segment.start]
        return Holding(
            dense=float(terms.dense_parameters[row]) + extra,
            expert=float(terms.expert_parameters[row]),
        )
    dense, expert = table.layers.dense_parameters[row], table.layers.expert_parameters[row]
    return Holding(
        dense=float(dense[segment.stop] - dense[segment.start]),
        expert=float(expert[segment.stop] - expert[segment.start]),
    )


def shard_counts(view: Frame) -> dict[Index, tuple[float, float]]:
    """Effective ZeRO shard counts (dense, expert) of each stage, at least 1.

    Each segment is sharded over the ranks that hold it; the count of a stage is what it holds
    over what is left of it.
    """
    left = dict.fromkeys(view.stages, (0.0, 0.0))
    for segment, held in zip(view.segments, view.held, strict=True):
        dense_ranks = holding.data_parallel_ranks(view.layout, segment.holders)
        expert_ranks = holding.expert_data_parallel_ranks(view.layout, segment.holders)
        for index, part in zip(segment.holders, held, strict=True):
            dense, expert = left[index]
            left[index] = (dense + part.dense / dense_ranks, expert + part.expert / expert_ranks)
    return {
        index: (_ratio(view.costs[index].dense, d), _ratio(view.costs[index].expert, e))
        for index, (d, e) in left.items()
    }


def _ratio(held: float, after: float) -> float:
    return held / after if after > 0 else 1.0
