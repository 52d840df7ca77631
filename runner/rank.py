"""What one rank does: groups, pipeline schedule, gradient sums, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch

from costmodel.layout.ranks import Rank, rank_table, stage_ranks
from costmodel.layout.shards import gradient_groups, holdings
from costmodel.model.graph import Block, ModelGraph
from runner.batch import Batch
from runner.boundary import Boundary, Side
from runner.gradients import GradientSums, Held, Synced, shares_of
from runner.groups import GroupMaker, needed_groups
from runner.recorder import Label, Recorder
from runner.schedule import SCHEDULES
from runner.stage import StageProgram
from runner.task import Task
from runner.typed import dist


@dataclass(frozen=True, slots=True, kw_only=True)
class RankResult:
    """One rank's part of the step's outcome."""

    losses: Mapping[int, float]
    synced: tuple[Synced, ...]
    sent: Mapping[Label, int]


def run_rank(task: Task, batch: Batch, rank: int, store: Path) -> RankResult:
    """One training step."""
    table = rank_table(task.layout)
    dist.init_process_group(
        "gloo",
        rank=rank,
        world_size=len(table),
        store=dist.FileStore(str(store), len(table)),
        timeout=timedelta(seconds=task.timeout_s),
    )
    me, recorder = table[rank], Recorder()
    gradients = gradient_groups(task.graph, task.layout, task.job)
    makers = GroupMaker(rank, recorder, needed_groups(table, gradients))
    mates = stage_ranks(table)[me.instance]
    option = task.layout.pipelines[me.pipeline].stages[me.stage].option
    mesh = makers.mesh(me, mates, sequence_parallel=option.sequence_parallel)
    program = StageProgram(task, me, mesh, batch)
    held = Held(
        weights=program.weights,
        boxes=program.boxes,
        shares=shares_of(tuple(holdings(task.graph, task.layout, task.job)), rank),
    )
    sums = GradientSums(held, gradients, makers)
    _run_schedule(task, program, _boundaries(task, table, me, recorder), sums)
    synced = sums.finish()
    dist.barrier()
    dist.destroy_process_group()
    return RankResult(losses=program.losses, synced=synced, sent=dict(recorder.sent))


def _boundaries(
    task: Task, table: tuple[Rank, ...], me: Rank, recorder: Recorder
) -> tuple[Boundary | None, Boundary | None]:
    """To the previous and to the next stage."""
    instances = stage_ranks(table)
    stages = task.layout.pipelines[me.pipeline].stages

    def side(index: int) -> Side:
        return Side(option=stages[index].option, ranks=instances[me.pipeline, me.copy, index])

    def boundary(other: int) -> Boundary | None:
        if not 0 <= other < len(stages):
            return None
        first, second = sorted((me.stage, other))
        ranks = tuple(r.rank for r in (*side(first).ranks, *side(second).ranks))
        return Boundary(
            me=me,
            here=side(me.stage),
            there=side(other),
            label=("pp", ranks),
            sequence_length=task.job.sequence_length,
            features=stream_features(task.graph),
            recorder=recorder,
        )

    return boundary(me.stage - 1), boundary(me.stage + 1)


def stream_features(graph: ModelGraph) -> tuple[int, ...]:
    """Sizes of the stream's feature dimensions between layers."""
    block: Block = graph.blocks[graph.layers[0]]
    return tuple(block.dims[dim] for dim in block.tensors[block.inputs[0]])


def _run_schedule(
    task: Task,
    program: StageProgram,
    sides: tuple[Boundary | None, Boundary | None],
    sums: GradientSums,
) -> None:
    before, after = sides
    order = SCHEDULES[task.layout.schedule.kind]
    pipeline = program.pipeline
    for action, index in order(len(pipeline.stages), program.me.stage, pipeline.microbatches):
        came_from, goes_to = (before, after) if action == "forward" else (after, before)
        arrived = came_from.receive() if came_from else None
        run = program.forward if action == "forward" else program.backward
        sums.before()
        result = run(index, arrived)
        if goes_to and result is not None:
            goes_to.send(result)
        sums.after(backward=action == "backward")
    for side in sides:
        if side:
            side.finish()


def set_up_torch() -> None:
    """One thread per rank; float64 throughout."""
    torch.set_num_threads(1)
