"""What one rank does: groups, pipeline schedule, gradient sums, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch

from costmodel.layout.ranks import rank_table, stage_ranks
from costmodel.layout.shards import gradient_groups, holdings
from runner.batch import Batch
from runner.gradients import GradientSums, Held, Synced, shares_of
from runner.groups import GroupMaker, needed_groups
from runner.neighbours import Neighbours
from runner.recorder import Label, Recorder
from runner.schedule import SCHEDULES, WEIGHT, WHOLE
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
    _run_schedule(task, program, Neighbours(task, table, me, recorder), sums)
    synced = sums.finish()
    dist.barrier()
    dist.destroy_process_group()
    return RankResult(losses=program.losses, synced=synced, sent=dict(recorder.sent))


def _run_schedule(
    task: Task, program: StageProgram, neighbours: Neighbours, sums: GradientSums
) -> None:
    schedule, pipeline = task.layout.schedule, program.pipeline
    passes = SCHEDULES[schedule.kind](
        len(pipeline.stages), program.me.stage, pipeline.microbatches, schedule.virtual_stages
    )
    for now in passes:
        if now.part == WEIGHT:
            program.weights_later(now.microbatch, now.chunk)
            sums.summed()
            continue
        arrived = neighbours.receive(now)
        sums.before()
        run = program.backward if now.backward else program.forward
        neighbours.send(now, run(now.microbatch, now.chunk, arrived))
        sums.after()
        if now.backward and now.part == WHOLE:
            sums.summed()
    neighbours.finish()


def set_up_torch() -> None:
    """One thread per rank; float64 throughout."""
    torch.set_num_threads(1)
