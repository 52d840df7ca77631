"""What the processes of a sweep share: a folder with settings, tables and the machine."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from runner.sweep.shapes import Settings

SETTINGS, MACHINE, STORE = "settings.json", "machine.json", "store"
TABLES = ("gemm.csv", "attention.csv", "memory.csv", "collectives.csv")

A = TypeVar("A")


def write_settings(folder: Path, settings: Settings) -> None:
    """For the processes to read."""
    (folder / SETTINGS).write_text(json.dumps(asdict(settings)), encoding="utf-8")


def read_settings(folder: Path) -> Settings:
    """As they were written."""
    return Settings(**json.loads((folder / SETTINGS).read_text(encoding="utf-8")))


def write_machine(folder: Path, machine: dict[str, Any]) -> None:
    """What the device is."""
    (folder / MACHINE).write_text(json.dumps(machine), encoding="utf-8")


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table as CSV; without rows there is none."""
    cells = [*rows]
    if cells:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *cells])


def within(items: Sequence[A], budget_s: float) -> Iterator[tuple[A, float]]:
    """Items and the seconds that each may take, until their time is over; at least the first."""
    begin = time.perf_counter()
    for index, item in enumerate(items):
        left_s = budget_s - (time.perf_counter() - begin)
        if index and left_s <= 0.0:
            return
        yield item, max(left_s, 0.0) / (len(items) - index)


def say(line: str) -> None:
    """Progress: the process that started this one shows it."""
    print(line, flush=True)  # noqa: T201  read by the parent
