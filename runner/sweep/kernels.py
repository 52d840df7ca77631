"""The process that measures one device: ``python -m runner.sweep.kernels FOLDER``."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from runner.sweep.clock import seconds_of
from runner.sweep.folder import (
    read_settings,
    say,
    within,
    write_machine,
    write_settings,
    write_table,
)
from runner.sweep.shapes import (
    CPU,
    CUDA,
    Settings,
    attention_shapes,
    gemm_shapes,
    precisions,
    stream_bytes,
)

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
MOST_CPU_RANKS = 4

STREAM_ARRAYS = 3
"""Two are read and one is written."""


def main(folder: Path) -> int:
    """Writes the machine and its tables."""
    settings = known(read_settings(folder))
    write_settings(folder, settings)
    torch.backends.cuda.matmul.allow_tf32 = False
    write_machine(folder, machine(settings.device))
    with torch.inference_mode():
        header = ("m", "n", "k", "dtype", "time_s")
        write_table(folder / "gemm.csv", header, gemm_rows(settings))
        header = ("batch", "heads", "sequence", "head_dim", "causal", "dtype", "time_s")
        write_table(folder / "attention.csv", header, attention_rows(settings))
        write_table(folder / "memory.csv", ("bytes", "time_s"), memory_rows(settings))
    return 0


def known(settings: Settings) -> Settings:
    """The settings on the device that is here. Raises RuntimeError where it is not."""
    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if settings.device == CUDA and not devices:
        raise RuntimeError("torch finds no CUDA device here; measure with --device cpu")
    if devices and settings.device != CPU:
        return replace(settings, device=CUDA, ranks=devices)
    ranks = min(MOST_CPU_RANKS, max(2, os.cpu_count() or 1))
    return replace(settings, device=CPU, ranks=ranks)


def machine(device: str) -> dict[str, Any]:
    """Title, vendor and memory of the device."""
    if device == CUDA:
        cuda: Any = torch.cuda
        found = cuda.get_device_properties(0)
        vendor = "amd" if torch.version.hip else "nvidia"
        return {"title": found.name, "vendor": vendor, "memory_bytes": float(found.total_memory)}
    memory = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    title = f"CPU, {platform.machine()}, {torch.get_num_threads()} threads"
    return {"title": title, "vendor": "cpu", "memory_bytes": memory}


def gemm_rows(settings: Settings) -> list[tuple[object, ...]]:
    """Seconds of products, all shapes of every precision."""
    cases = [(shape, name) for shape in gemm_shapes(settings) for name in precisions(settings)]
    rows: list[tuple[object, ...]] = []
    for ((m, n, k), name), share_s in within(cases, settings.budget_s):
        say(f"product {m} x {n} x {k} {name}")
        a, b = _random((m, k), name, settings), _random((k, n), name, settings)
        out = torch.empty((m, n), dtype=TYPES[name], device=settings.device)

        def product(a: Tensor = a, b: Tensor = b, out: Tensor = out) -> Tensor:
            return torch.matmul(a, b, out=out)

        rows.append((m, n, k, name, seconds_of(product, settings.device, budget_s=share_s)))
    return rows


def attention_rows(settings: Settings) -> list[tuple[object, ...]]:
    """Seconds of causal attention forward, by the kernel that torch chooses."""
    name = precisions(settings)[0]
    attend: Any = torch.nn.functional.scaled_dot_product_attention
    rows: list[tuple[object, ...]] = []
    for shape, share_s in within(attention_shapes(settings), settings.budget_s):
        batch, heads, sequence, dim = shape
        say(f"attention {batch} x {heads} x {sequence} x {dim} {name}")
        q, k, v = (_random((batch, heads, sequence, dim), name, settings) for _ in range(3))

        def core(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> Tensor:
            return attend(q, k, v, is_causal=True)

        taken_s = seconds_of(core, settings.device, budget_s=share_s)
        rows.append((batch, heads, sequence, dim, 1, name, taken_s))
    return rows


def memory_rows(settings: Settings) -> list[tuple[object, ...]]:
    """Seconds of ``c = a + b``, whose arrays are larger than caches."""
    rows: list[tuple[object, ...]] = []
    for size, share_s in within(stream_bytes(settings), settings.budget_s):
        say(f"memory {STREAM_ARRAYS * size / 2**20:.0f} MiB")
        a, b, c = (torch.ones(size // 4, device=settings.device) for _ in range(STREAM_ARRAYS))

        def add(a: Tensor = a, b: Tensor = b, c: Tensor = c) -> Tensor:
            return torch.add(a, b, out=c)

        taken_s = seconds_of(add, settings.device, budget_s=share_s)
        rows.append((STREAM_ARRAYS * size, taken_s))
    return rows


def _random(shape: tuple[int, ...], name: str, settings: Settings) -> Tensor:
    return torch.randn(shape, device=settings.device).to(TYPES[name])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
