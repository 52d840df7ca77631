"""The whole model in one process: no shards, no communication, a few sequences at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from costmodel.layout.instances import MTP, Instance, parameter_name, stage_instances
from costmodel.layout.values import Stage, StageOption
from costmodel.model.graph import Block, ModelGraph
from runner.batch import Batch
from runner.groups import Mesh, alone
from runner.ops.registry import whole
from runner.optimizer import step
from runner.place import Place
from runner.recorder import Recorder
from runner.task import Task
from runner.typed import backward, numbers
from runner.weights import initial

SEQUENCES_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Gradients and updated weights per parameter; summed token loss of each sequence."""

    gradients: Mapping[str, Tensor]
    weights: Mapping[str, Tensor]
    losses: tuple[float, ...]


class _Model:
    """All blocks in order, over whole weights."""

    def __init__(self, graph: ModelGraph, seed: int) -> None:
        self.graph = graph
        everything = Stage(
            option=StageOption(pool=""),
            chunks=((0, graph.num_layers),),
            embedding=True,
            head=True,
            mtp=len(graph.mtp),
        )
        self.instances = stage_instances(graph, everything)
        self.weights: dict[str, Tensor] = {}
        for instance in self.instances:
            block = graph.blocks[instance.block]
            for op in block.ops:
                for weight in op.weights:
                    name = parameter_name(graph, instance, op, weight)
                    if name not in self.weights:
                        sizes = tuple(block.dims[d] for d in weight.dims)
                        self.weights[name] = initial(seed, name, sizes).requires_grad_()

    def losses(self, batch: Batch, rows: tuple[int, int]) -> Tensor:
        """Summed token losses of some sequences."""
        x: Tensor | None = None
        total: Tensor | None = None
        for instance in self.instances:
            shift = instance.index + 1 if instance.part == MTP else 0
            place = _place(self.graph.blocks[instance.block], batch, rows, shift)
            y, loss = self._run(instance, x, place)
            x = x if y is None else y
            if loss is not None:
                total = loss if total is None else total + loss
        if total is None:
            raise ValueError("the model has no head")
        return total

    def _run(
        self, instance: Instance, x: Tensor | None, place: Place
    ) -> tuple[Tensor | None, Tensor | None]:
        block = place.block
        tensors = {} if x is None else dict.fromkeys(block.inputs[:1], x)
        loss: Tensor | None = None
        for op in block.ops:
            names = {w.name: parameter_name(self.graph, instance, op, w) for w in op.weights}
            weights = {key: self.weights[name] for key, name in names.items()}
            inputs = tuple(tensors[name] for name in op.inputs)
            result = whole(op.kind)(op, inputs, weights, place)
            if op.outputs:
                tensors[op.outputs[0]] = result
            else:
                loss = result
        return tensors.get(block.output), loss


def _place(block: Block, batch: Batch, rows: tuple[int, int], shift: int) -> Place:
    length = batch.sequence_length
    ids, targets = batch.window(rows, (0, length), shift)
    single = alone("reference", Recorder())
    return Place(
        block=block,
        mesh=Mesh(tp=single, cp=single, ep=single, etp=single, sequence_parallel=False),
        sequence_length=length,
        positions=torch.arange(length),
        stream_positions=torch.arange(length),
        ids=ids,
        targets=targets,
    )


def run_reference(task: Task, batch: Batch) -> Reference:
    """Gradients of the mean token loss over the job's global batch, and one optimizer step."""
    model = _Model(task.graph, task.seed)
    sequences = task.job.global_batch_size
    tokens = sequences * task.job.sequence_length
    losses: list[float] = []
    for start in range(0, sequences, SEQUENCES_AT_ONCE):
        found = model.losses(batch, (start, min(sequences, start + SEQUENCES_AT_ONCE)))
        backward(found.sum() / tokens)
        losses.extend(numbers(found.detach()))
    gradients = {
        name: torch.zeros_like(w) if w.grad is None else w.grad for name, w in model.weights.items()
    }
    weights = {name: step(w.detach(), gradients[name]) for name, w in model.weights.items()}
    return Reference(gradients=gradients, weights=weights, losses=tuple(losses))
