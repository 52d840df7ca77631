"""One rank's share of a stage: its weights and its blocks, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from costmodel.layout.instances import (
    EPILOGUE,
    LAYER,
    MTP,
    PROLOGUE,
    Instance,
    parameter_name,
    stage_instances,
)
from costmodel.layout.ranks import Rank
from costmodel.layout.shards import Box, weight_box
from costmodel.model.graph import Op, Weight
from runner.apart import Later
from runner.batch import Batch, first_sequence, token_range
from runner.block import BlockProgram, OpWeights
from runner.groups import Mesh
from runner.place import Place
from runner.regather import Regather
from runner.schedule import SPLIT
from runner.tape import Result, Tape, record
from runner.task import Task
from runner.typed import numbers
from runner.weights import initial, shard


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A block instance with the names of its parameters and the chunk that it belongs to."""

    instance: Instance
    chunk: int
    program: BlockProgram
    parameters: dict[tuple[str, str], str]


@dataclass(slots=True)
class Flight:
    """A micro-batch between its forward and its backward."""

    spine: list[Tape] = field(default_factory=list[Tape])
    head: list[Tape] = field(default_factory=list[Tape])
    depth: list[Tape] = field(default_factory=list[Tape])


class StageProgram:
    """Runs one rank's part of a stage.

    weights: parameter name -> shard (a leaf with a gradient). boxes: what part it is.
    losses: sequence index -> sum of the token losses that this rank saw.
    """

    def __init__(self, task: Task, me: Rank, mesh: Mesh, batch: Batch) -> None:
        self.task, self.me, self.mesh, self.batch = task, me, mesh, batch
        self.pipeline = task.layout.pipelines[me.pipeline]
        self.stage = self.pipeline.stages[me.stage]
        self.option = self.stage.option
        self.weights: dict[str, Tensor] = {}
        self.boxes: dict[str, Box] = {}
        self.losses: dict[int, float] = {}
        self.flights: dict[tuple[int, int], Flight] = {}
        self.later: dict[tuple[int, int], Later] = {}
        pieces = [self._piece(i) for i in stage_instances(task.graph, self.stage)]
        self.pieces = [p for p in pieces if not self._skipped(p.instance)]

    def _skipped(self, instance: Instance) -> bool:
        return instance.part == LAYER and instance.index == self.task.fault.skipped_layer

    def _piece(self, instance: Instance) -> Piece:
        block = self.task.graph.blocks[instance.block]
        parameters: dict[tuple[str, str], str] = {}
        for op in block.ops:
            for weight in op.weights:
                name = parameter_name(self.task.graph, instance, op, weight)
                parameters[op.name, weight.name] = name
                self._hold(name, op, weight, instance)
        program = BlockProgram(block=block, sequence_parallel=self.option.sequence_parallel)
        chunk = self._chunk(instance)
        return Piece(instance=instance, chunk=chunk, program=program, parameters=parameters)

    def _chunk(self, instance: Instance) -> int:
        """The prologue is in the stage's first chunk, what follows the layers in its last."""
        if instance.part == PROLOGUE:
            return 0
        chunks = self.stage.chunks
        if instance.part in (EPILOGUE, MTP):
            return len(chunks) - 1
        return next(k for k, (start, stop) in enumerate(chunks) if start <= instance.index < stop)

    def _hold(self, name: str, op: Op, weight: Weight, instance: Instance) -> None:
        if name in self.weights:
            return
        block = self.task.graph.blocks[instance.block]
        box = weight_box(op, weight, block, (self.option, self.me), self.task.job)
        whole = initial(self.task.seed, name, tuple(block.dims[d] for d in weight.dims))
        self.boxes[name] = box
        self.weights[name] = shard(whole, box).requires_grad_(weight.trainable)

    def rows(self, microbatch: int) -> tuple[int, int]:
        """Sequences of the global batch that this rank's replica processes."""
        option, me = self.option, self.me
        first = first_sequence(self.task.layout, me.pipeline, me.copy)
        start = first + microbatch * option.samples + me.replica * option.micro_batch_size
        return start, start + option.micro_batch_size

    def forward(self, microbatch: int, chunk: int, x: Tensor | None) -> Tensor | None:
        """Runs one of the stage's chunks; returns what the next chunk gets."""
        flight = self.flights[microbatch, chunk] = Flight()
        for piece in self._part(chunk, spine=True):
            (x, _), tape = self._record(piece, microbatch, x)
            flight.spine.append(tape)
        if chunk == len(self.stage.chunks) - 1:
            self._tail(microbatch, x, flight)
        return x

    def _tail(self, microbatch: int, x: Tensor | None, flight: Flight) -> None:
        """Final norm and head, and beside them the multi-token-prediction blocks."""
        y = x
        for piece in self._part(len(self.stage.chunks) - 1, spine=False):
            if piece.instance.part == MTP:
                (y, loss), tape = self._record(piece, microbatch, y)
                flight.depth.append(tape)
            else:
                (x, loss), tape = self._record(piece, microbatch, x)
                flight.head.append(tape)
            self._note(microbatch, loss)

    def _part(self, chunk: int, *, spine: bool) -> Iterator[Piece]:
        for piece in self.pieces:
            if piece.chunk == chunk and (piece.instance.part in (EPILOGUE, MTP)) is not spine:
                yield piece

    def _record(self, piece: Piece, microbatch: int, x: Tensor | None) -> tuple[Result, Tape]:
        shift = piece.instance.index + 1 if piece.instance.part == MTP else 0
        layer = piece.instance.part == LAYER
        weights: OpWeights = {key: self.weights[p] for key, p in piece.parameters.items()}

        def body(source: Tensor | None, memory: Regather | None) -> Result:
            place = self._place(piece, microbatch, shift, memory)
            return piece.program.run(source, weights, place)

        full = layer and self.option.recompute == "full"
        return record(body, x, full_recompute=full, loss_weight=self.loss_weight)

    def _place(self, piece: Piece, microbatch: int, shift: int, memory: Regather | None) -> Place:
        length = self.batch.sequence_length
        columns = token_range(self.option, self.me.cp, None, length)
        part = self.me.tp if self.option.sequence_parallel else None
        ids, targets = self.batch.window(self.rows(microbatch), columns, shift)
        return Place(
            block=piece.program.block,
            mesh=self.mesh,
            sequence_length=length,
            positions=torch.arange(*columns),
            stream_positions=torch.arange(*token_range(self.option, self.me.cp, part, length)),
            ids=ids,
            targets=targets,
            memory=memory,
            selective=self.option.recompute == "selective" and piece.instance.part == LAYER,
            later=self._later(microbatch, piece.chunk),
        )

    def _later(self, microbatch: int, chunk: int) -> Later | None:
        """Where a chunk's products leave weight gradients, if the schedule has them apart."""
        if self.task.layout.schedule.kind not in SPLIT:
            return None
        return self.later.setdefault((microbatch, chunk), [])

    @property
    def loss_weight(self) -> float:
        """Weight of one token in the gradient: one over the tokens of the job's global batch."""
        factor = self.task.fault.gradient_weight if self.me.pipeline == 0 else 1.0
        return factor / (self.task.job.global_batch_size * self.batch.sequence_length)

    def _note(self, microbatch: int, loss: Tensor | None) -> None:
        if loss is None or self.me.tp:
            return
        for row, value in zip(range(*self.rows(microbatch)), numbers(loss), strict=True):
            self.losses[row] = self.losses.get(row, 0.0) + value

    def backward(self, microbatch: int, chunk: int, grad: Tensor | None) -> Tensor | None:
        """Backward of a chunk; returns the gradient for the previous one."""
        flight = self.flights.pop((microbatch, chunk))
        for tapes in (flight.head, flight.depth):
            if tapes:
                grad = _add(grad, _unwind(tapes, None))
        return _unwind(flight.spine, grad)

    def weights_later(self, microbatch: int, chunk: int) -> None:
        """Computes and adds the weight gradients that the backward of a chunk left."""
        for add in self.later.pop((microbatch, chunk)):
            add()


def _unwind(tapes: list[Tape], grad: Tensor | None) -> Tensor | None:
    for tape in reversed(tapes):
        grad = tape.backward(grad)
    return grad


def _add(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None or b is None else a + b
