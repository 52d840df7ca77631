"""Seconds of one run of something on a device, by its own clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from runner.sweep.shapes import CUDA

WARM_UP = 3
"""Runs before the clock starts: kernels are chosen and loaded, clocks rise."""

LEAST_SAMPLES, MOST_SAMPLES = 3, 30

SAMPLE_S = 2e-3
"""A sample holds as many runs as take about this long, so that the clock's own cost is small."""

Run = Callable[[], object]


def seconds_of(run: Run, device: str, *, budget_s: float) -> float:
    """Seconds of a run, warmed up; within the budget once three samples are taken.

    On CUDA the median between two events of the stream, after which the device is synchronised. On
    CPU the least by the processor's clock: what else runs there can only add.
    """
    for _ in range(WARM_UP if device == CUDA else 1):
        run()
    sample = _cuda_sample if device == CUDA else _cpu_sample
    once = max(sample(run, 1), 1e-9)
    count = max(1, round(SAMPLE_S / once))
    samples: list[float] = []
    begin = time.perf_counter()
    while len(samples) < MOST_SAMPLES:
        samples.append(sample(run, count) / count)
        if len(samples) >= LEAST_SAMPLES and time.perf_counter() - begin > budget_s:
            break
    return median(samples) if device == CUDA else min(samples)


def synchronise(device: str) -> None:
    """Wait until the device has done all that it was given."""
    if device == CUDA:
        torch.cuda.synchronize()


def _cpu_sample(run: Run, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return time.perf_counter() - begin


def _cuda_sample(run: Run, count: int) -> float:
    """Seconds between two events around the runs; kernels of one stream follow one another."""
    event: Any = torch.cuda.Event
    begin, end = event(enable_timing=True), event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(count):
        run()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3
