"""Starts the processes of a sweep, shows their progress and stops what takes too long."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from costmodel.errors import HaplanError
from runner.sweep.folder import MACHINE, TABLES, read_settings, write_settings
from runner.sweep.shapes import Settings

Progress = Callable[[str], None]


class SweepError(HaplanError):
    """The machine could not be measured; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """tables: the files that were written. machine: title, vendor and memory of the device."""

    tables: tuple[Path, ...]
    machine: dict[str, Any]
    settings: Settings


def sweep(device: str, *, quick: bool, into: Path, progress: Progress) -> Swept:
    """Measures this machine and leaves the tables in a folder.

    device: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is some. Raises SweepError when a
    benchmark fails or takes too long, ModuleNotFoundError without torch.
    """
    if find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    with TemporaryDirectory(prefix="haplan-sweep-") as name:
        folder = Path(name)
        settings = Settings(device=device, quick=quick)
        write_settings(folder, settings)
        _run(folder, settings, [["runner.sweep.kernels"]], progress)
        settings = read_settings(folder)
        ranks = [["runner.sweep.ranks", str(rank)] for rank in range(settings.ranks)]
        if len(ranks) > 1:
            _run(folder, settings, ranks, progress)
        machine = json.loads((folder / MACHINE).read_text(encoding="utf-8"))
        return Swept(tables=_kept(folder, into), machine=machine, settings=settings)


def _run(
    folder: Path, settings: Settings, modules: Sequence[Sequence[str]], progress: Progress
) -> None:
    """Runs processes side by side; the first one's lines are progress."""
    processes = [_start(folder, index, module) for index, module in enumerate(modules)]
    reader = threading.Thread(target=_relay, args=(processes[0], progress), daemon=True)
    reader.start()
    try:
        for index, process in enumerate(processes):
            if process.wait(settings.limit_s):
                raise SweepError(_story(folder, modules[index][0], index, process.returncode))
    except subprocess.TimeoutExpired:
        late = f"{modules[0][0]} did not end within {settings.limit_s:g} s"
        raise SweepError(f"{late} and was stopped; try --quick") from None
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        reader.join(timeout=5.0)
        for process in processes:
            if process.stdout is not None:
                process.stdout.close()


def _start(folder: Path, index: int, module: Sequence[str]) -> subprocess.Popen[str]:
    name, *rest = module
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    with (folder / f"errors-{name}-{index}").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", name, str(folder), *rest],
            env=environment,
            stdout=subprocess.PIPE if index == 0 else subprocess.DEVNULL,
            stderr=errors,
            text=True,
            start_new_session=True,
        )


def _relay(process: subprocess.Popen[str], progress: Progress) -> None:
    for line in process.stdout or ():
        progress(line.rstrip())


def _story(folder: Path, name: str, index: int, status: int) -> str:
    """The last line of what a process had to say."""
    text = (folder / f"errors-{name}-{index}").read_text(encoding="utf-8", errors="replace")
    last = next((line for line in reversed(text.splitlines()) if line.strip()), f"status {status}")
    return f"{name} failed: {last}"


def _kept(folder: Path, into: Path) -> tuple[Path, ...]:
    """The tables, copied to where they stay."""
    into.mkdir(parents=True, exist_ok=True)
    kept = [into / name for name in TABLES if (folder / name).exists()]
    for path in kept:
        shutil.copyfile(folder / path.name, path)
    return tuple(kept)
