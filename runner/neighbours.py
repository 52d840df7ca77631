"""Where a pass gets its input from and where its result goes.

Chunks of layers are numbered along the model; with several chunks per stage they go around the
stages. Chunk c of a pipeline of p stages is on stage c mod p.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from costmodel.layout.ranks import Rank, stage_ranks
from costmodel.model.graph import ModelGraph
from runner.boundary import Boundary, Side
from runner.recorder import Recorder
from runner.schedule import WEIGHT, Pass
from runner.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hop:
    """One message: to or from a stage, under a tag that both sides work out."""

    stage: int
    tag: int


class Neighbours:
    """The messages of one rank."""

    def __init__(self, task: Task, table: tuple[Rank, ...], me: Rank, recorder: Recorder) -> None:
        pipeline = task.layout.pipelines[me.pipeline]
        self.me = me
        self.depth = len(pipeline.stages)
        self.chunks = task.layout.schedule.virtual_stages
        self.microbatches = pipeline.microbatches
        instances = stage_ranks(table)
        sides = [
            Side(option=stage.option, ranks=instances[me.pipeline, me.copy, index])
            for index, stage in enumerate(pipeline.stages)
        ]
        others = {(me.stage + step) % self.depth for step in (-1, 1)} - {me.stage}
        self.boundaries = {
            other: Boundary(
                me=me,
                here=sides[me.stage],
                there=sides[other],
                label=("pp", _names(sides[me.stage], sides[other])),
                sequence_length=task.job.sequence_length,
                features=stream_features(task.graph),
                recorder=recorder,
            )
            for other in sorted(others)
        }
        self.kept: dict[int, Tensor] = {}

    def receive(self, now: Pass) -> Tensor | None:
        """The input of a pass; None at the ends of the model."""
        hop = self._hop(now, incoming=True)
        if hop is None:
            return None
        if hop.stage == self.me.stage:
            return self.kept.pop(hop.tag)
        return self.boundaries[hop.stage].receive(hop.tag)

    def send(self, now: Pass, result: Tensor | None) -> None:
        """Starts sending the result of a pass; nothing at the ends of the model."""
        hop = self._hop(now, incoming=False)
        if hop is None or result is None:
            return
        if hop.stage == self.me.stage:
            self.kept[hop.tag] = result.detach()
        else:
            self.boundaries[hop.stage].send(result, hop.tag)

    def finish(self) -> None:
        """Waits until everything is sent."""
        for boundary in self.boundaries.values():
            boundary.finish()

    def _hop(self, now: Pass, *, incoming: bool) -> _Hop | None:
        if now.part == WEIGHT:
            return None
        chunk = now.chunk * self.depth + self.me.stage
        other = chunk + (1 if incoming is now.backward else -1)
        if not 0 <= other < self.depth * self.chunks:
            return None
        lane = 2 * min(chunk, other) + now.backward
        return _Hop(stage=other % self.depth, tag=lane * self.microbatches + now.microbatch)


def _names(a: Side, b: Side) -> tuple[int, ...]:
    return tuple(sorted(rank.rank for rank in (*a.ranks, *b.ranks)))


def stream_features(graph: ModelGraph) -> tuple[int, ...]:
    """Sizes of the stream's feature dimensions between layers."""
    block = graph.blocks[graph.layers[0]]
    return tuple(block.dims[dim] for dim in block.tensors[block.inputs[0]])
