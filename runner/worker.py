"""The process that executes a task: forks one process per rank, and runs the reference itself.

``python -m runner.worker FOLDER`` reads ``task``, and writes ``outcome`` or ``failure`` there.
Ranks are forked after torch is loaded and before it computes anything, while there is one thread.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from costmodel.layout.ranks import rank_table
from costmodel.layout.shards import gradient_groups
from runner.batch import Batch, make_batch
from runner.comparison import compare
from runner.rank import RankResult, run_rank, set_up_torch
from runner.reference import run_reference
from runner.task import Outcome, Task, read, write


def main(folder: Path) -> int:
    """Exit status 0 when there is an outcome."""
    task: Task = read(folder / "task")
    set_up_torch()
    try:
        write(folder / "outcome", execute(task, folder))
    except Exception:  # noqa: BLE001 - whatever it was, the caller has to hear of it
        (folder / "failure").write_text(traceback.format_exc(), encoding="utf-8")
        return 1
    return 0


def execute(task: Task, folder: Path) -> Outcome:
    """Runs all ranks and the reference, and compares."""
    begin = time.perf_counter()
    batch = step_batch(task)
    pids = [_fork(task, batch, rank.rank, folder) for rank in rank_table(task.layout)]
    reference = run_reference(task, batch)
    _wait(pids, folder)
    results: list[RankResult] = [read(_result(folder, rank)) for rank in range(len(pids))]
    groups = gradient_groups(task.graph, task.layout, task.job)
    outcome = compare(task, results, groups, reference)
    return replace(outcome, elapsed_s=time.perf_counter() - begin)


def step_batch(task: Task) -> Batch:
    """Tokens of the step: what the job asks for, or what the layout runs if that is more."""
    sizes = [b.dims["vocab"] for b in task.graph.blocks.values() if "vocab" in b.dims]
    sequences = max(task.job.global_batch_size, task.layout.samples)
    depth = len(task.graph.mtp)
    return make_batch(task.seed, sequences, task.job.sequence_length, min(sizes), depth)


def _fork(task: Task, batch: Batch, rank: int, folder: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        write(_result(folder, rank), run_rank(task, batch, rank, folder / "store"))
        status = 0
    except Exception:  # noqa: BLE001 - reported by the parent
        (folder / f"failure-{rank}").write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(status)


def _result(folder: Path, rank: int) -> Path:
    return folder / f"result-{rank}"


def _wait(pids: Sequence[int], folder: Path) -> None:
    """Waits for all ranks; the first that fails ends the others."""
    running = {pid: rank for rank, pid in enumerate(pids)}
    while running:
        pid, status = os.waitpid(-1, 0)
        rank = running.pop(pid)
        if status:
            for other in running:
                os.kill(other, 9)
            for other in running:
                os.waitpid(other, 0)
            report = folder / f"failure-{rank}"
            text = report.read_text(encoding="utf-8") if report.exists() else f"status {status}"
            raise RuntimeError(f"rank {rank} failed: {text}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
