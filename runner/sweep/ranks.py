"""One process of the collectives: ``python -m runner.sweep.ranks FOLDER RANK``.

Ranks take turns by a barrier; a collective takes as long as its slowest rank. All ranks time as
often, whatever their clocks say: the first one decides.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import torch

from runner.sweep.clock import synchronise
from runner.sweep.folder import STORE, read_settings, say, write_table
from runner.sweep.shapes import COLLECTIVES, CUDA, Settings, payload_bytes
from runner.typed import dist

WARM_UP, SAMPLES, MOST_RUNS = 1, 5, 20

SAMPLE_S = 1e-2
"""A sample holds as many runs as take about this long."""

Run = Callable[[], object]


def main(folder: Path, rank: int) -> int:
    """Measures with the other ranks; the first writes the table."""
    settings = read_settings(folder)
    cuda = settings.device == CUDA
    if cuda:
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(1)
    dist.init_process_group(
        "nccl" if cuda else "gloo",
        rank=rank,
        world_size=settings.ranks,
        store=dist.FileStore(str(folder / STORE), settings.ranks),
        timeout=timedelta(seconds=settings.limit_s),
    )
    rows = measured(settings, rank)
    if rank == 0:
        header = ("collective", "ranks", "nodes", "bytes", "time_s")
        write_table(folder / "collectives.csv", header, rows)
    dist.barrier()
    dist.destroy_process_group()
    return 0


def measured(settings: Settings, rank: int) -> list[tuple[object, ...]]:
    """Seconds of every collective and size, until the first rank's time is over."""
    begin = time.perf_counter()
    rows: list[tuple[object, ...]] = []
    for size in payload_bytes(settings):
        for name in COLLECTIVES:
            over = time.perf_counter() - begin > settings.budget_s
            if rows and agreed(float(over), settings) > 0.0:
                return rows
            if rank == 0:
                say(f"{name} {size} bytes, {settings.ranks} ranks")
            run = collective(name, size, settings)
            rows.append((name, settings.ranks, 1, size, seconds_of(run, settings)))
    return rows


def collective(name: str, size: int, settings: Settings) -> Run:
    """A collective on a tensor of so many bytes in all."""
    count, ranks = max(1, size // 4 // settings.ranks), settings.ranks
    whole = torch.ones(count * ranks, device=settings.device)
    part = torch.ones(count, device=settings.device)
    other = torch.empty_like(whole)
    runs: dict[str, Run] = {
        "all_reduce": lambda: dist.all_reduce(whole),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "all_to_all": lambda: dist.all_to_all_single(other, whole),
    }
    return runs[name]


def seconds_of(run: Run, settings: Settings) -> float:
    """Seconds of one run on the slowest rank: the median of samples, on CPU the least."""
    for _ in range(WARM_UP):
        run()
    once = sample(run, 1, settings)
    count = min(max(1, round(SAMPLE_S / max(once, 1e-9))), MOST_RUNS)
    samples = [sample(run, count, settings) / count for _ in range(SAMPLES)]
    return median(samples) if settings.device == CUDA else min(samples)


def sample(run: Run, count: int, settings: Settings) -> float:
    """Seconds of so many runs on the slowest rank, from a common start."""
    synchronise(settings.device)
    dist.barrier()
    synchronise(settings.device)
    begin = time.perf_counter()
    for _ in range(count):
        run()
    synchronise(settings.device)
    return agreed(time.perf_counter() - begin, settings)


def agreed(value: float, settings: Settings) -> float:
    """The largest of the ranks' values, the same on all."""
    held: Any = torch.tensor([value], dtype=torch.float64, device=settings.device)
    dist.all_reduce(held, op=dist.ReduceOp.MAX)
    return float(held.item())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
