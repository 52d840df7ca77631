"""A layout seen through a stage table: what each stage costs and holds, as plain numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from costmodel import holders as holding
from costmodel.layout.values import Layout, Stage, StageOption
from costmodel.memory import Shards
from costmodel.stage.chunks import ChunkCosts, chunks_of
from costmodel.stage.sums import IntArray, between, ends_of, totals
from costmodel.stage.table import FloatArray, StageTable, Terms

Index = tuple[int, int]
"""(pipeline, stage)."""

_EMBEDDING, _HEAD, _MTP = -1, -2, -3
"""``Segment.start`` of the runs of end blocks, which are no layers."""


class StageCosts(NamedTuple):
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


class Holding(NamedTuple):
    """What one stage keeps of one segment on one chip: dense and expert parameters."""

    dense: float
    expert: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Everything that evaluating one layout reads from the table.

    columns: the same costs by name, (stages,) each, and zero: the ZeRO stage of each.
    chunks: costs of the chunks of each stage, where stages have several.
    segments: runs of layers with the same holders, then the embedding and the head.
    held: parameters of each segment on one chip of each of its holders, in their order.
    """

    layout: Layout
    table: StageTable
    rows: Mapping[Index, int]
    stages: Mapping[Index, Stage]
    costs: Mapping[Index, StageCosts]
    columns: Mapping[str, FloatArray]
    zero: IntArray
    chunks: Mapping[Index, tuple[ChunkCosts, ...]]
    segments: tuple[holding.Segment, ...]
    held: tuple[tuple[Holding, ...], ...]

    def span(self, d: int) -> slice:
        """Where the stages of pipeline d are in the columns."""
        before = sum(len(pipeline.stages) for pipeline in self.layout.pipelines[:d])
        return slice(before, before + len(self.layout.pipelines[d].stages))


def frame(table: StageTable, option_rows: Mapping[StageOption, int], layout: Layout) -> Frame:
    """Looks the layout's stages up in the table. Raises KeyError for an option it lacks."""
    stages = {(d, i): s for d, p in enumerate(layout.pipelines) for i, s in enumerate(p.stages)}
    rows = {index: option_rows[stage.option] for index, stage in stages.items()}
    segments = (*holding.segments(layout), *_end_segments(stages))
    both = list(rows.values()), list(stages.values())
    columns, several = _columns(table, *both), layout.schedule.virtual_stages > 1
    return Frame(
        layout=layout,
        table=table,
        rows=rows,
        stages=stages,
        costs=dict(zip(stages, _costs(columns), strict=True)),
        columns=columns,
        zero=np.array([stage.option.zero for stage in stages.values()]),
        chunks=dict(zip(stages, chunks_of(table, *both), strict=True)) if several else {},
        segments=segments,
        held=_held(table, rows, stages, segments),
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
    return _costs(_columns(table, [row], [stage]))[0]


def _costs(columns: Mapping[str, FloatArray]) -> list[StageCosts]:
    return list(map(StageCosts, *(columns[name].tolist() for name in StageCosts._fields)))


_SUMMED = (
    "forward_s",
    "backward_s",
    "forward_ep_s",
    "backward_ep_s",
    "weight_gradient_s",
    "activation_bytes",
    "deferred_bytes",
)
_EXCHANGES = ("tp_s", "cp_s", "ep_s")


def _columns(
    table: StageTable, rows: Sequence[int], stages: Sequence[Stage]
) -> dict[str, FloatArray]:
    """Costs of stages, each from its row of the table."""
    runs = [(i, a, b) for i, stage in enumerate(stages) for a, b in stage.chunks]
    ends = [(i, terms) for i, stage in enumerate(stages) for terms in ends_of(table, stage)]
    names = {
        *_SUMMED,
        *(f"{way}_{name}" for name in _EXCHANGES for way in ("forward", "backward")),
        *("dense_parameters", "expert_parameters"),
    }
    total, pairs = totals(table, rows, runs, ends, names), list(zip(rows, stages, strict=True))
    extra = [sum(_extra_parameters(table, row, stage).values()) for row, stage in pairs]
    return {
        **{name: total[name] for name in _SUMMED},
        **{name: total[f"forward_{name}"] + total[f"backward_{name}"] for name in _EXCHANGES},
        "dense": total["dense_parameters"] + np.array(extra),
        "expert": total["expert_parameters"],
        "transient_bytes": np.array([_transient_bytes(table, *pair) for pair in pairs]),
    }


def _extra_parameters(table: StageTable, row: int, stage: Stage) -> dict[int, float]:
    """Dense parameters of each end run beyond its table row: shared weights once, copies added.

    The table's multi-token depth leaves out the head's weight, which its stage normally has.
    """
    extra: dict[int, float] = {}
    if stage.embedding and stage.head:
        extra[_HEAD] = -float(table.tied_parameters[row])
    if stage.mtp > 0:
        head = 0.0 if stage.head else float(table.mtp_head_parameters[row])
        shared = float(table.mtp_embedding_parameters[row]) if stage.embedding else 0.0
        extra[_MTP] = head - shared
    return extra


def _transient_bytes(table: StageTable, row: int, stage: Stage) -> float:
    peaks = [max(table.transient_bytes[row, a:b].tolist()) for a, b in stage.chunks if b > a]
    if stage.embedding:
        peaks.append(float(table.embedding_transient_bytes[row]))
    if stage.head:
        peaks.append(float(table.head_transient_bytes[row]))
    return max(peaks, default=0.0)


def _end_terms(table: StageTable) -> dict[int, Terms]:
    return {_EMBEDDING: table.embedding, _HEAD: table.head, _MTP: table.mtp}


def _held(
    table: StageTable,
    rows: Mapping[Index, int],
    stages: Mapping[Index, Stage],
    segments: Sequence[holding.Segment],
) -> tuple[tuple[Holding, ...], ...]:
    """Parameters of each segment on one chip of each of its holders."""
    ends = _end_terms(table)
    runs = [(rows[i], s.start, s.stop) for s in segments if s.start not in ends for i in s.holders]
    where = np.array(runs, dtype=np.int64).reshape(-1, 3).T
    both = table.layers.dense_parameters, table.layers.expert_parameters
    layers = map(Holding, *(between(prefix, *where).tolist() for prefix in both))

    def held(segment: holding.Segment, index: Index) -> Holding:
        if segment.start not in ends:
            return next(layers)
        terms, row = ends[segment.start], rows[index]
        extra = _extra_parameters(table, row, stages[index]).get(segment.start, 0.0)
        dense = float(terms.dense_parameters[row]) + extra
        return Holding(dense=dense, expert=float(terms.expert_parameters[row]))

    return tuple(tuple(held(segment, index) for index in segment.holders) for segment in segments)


def shard_counts(view: Frame) -> Shards:
    """Effective ZeRO shard counts of each stage, at least 1; (stages,) each.

    Each segment is sharded over the ranks that hold it; the count of a stage is what it holds
    over what is left of it.
    """
    dense, expert = dict.fromkeys(view.stages, 0.0), dict.fromkeys(view.stages, 0.0)
    for segment, held in zip(view.segments, view.held, strict=True):
        dense_ranks = holding.data_parallel_ranks(view.layout, segment.holders)
        expert_ranks = holding.expert_data_parallel_ranks(view.layout, segment.holders)
        for index, part in zip(segment.holders, held, strict=True):
            dense[index] += part.dense / dense_ranks
            expert[index] += part.expert / expert_ranks
    return Shards(
        dense=_ratios(view.columns["dense"], dense.values()),
        expert=_ratios(view.columns["expert"], expert.values()),
    )


def _ratios(held: FloatArray, left: Iterable[float]) -> FloatArray:
    after = np.array(list(left))
    return np.where(after > 0.0, held / np.where(after > 0.0, after, 1.0), 1.0)
