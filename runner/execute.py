"""Runs a task in processes of its own, so that the caller never loads torch or forks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from costmodel.errors import HaplanError
from runner.task import Outcome, Task, read, write


class ExecutionError(HaplanError):
    """The processes did not finish: a rank raised, or the time was over."""


def execute(task: Task) -> Outcome:
    """Runs the task's ranks on this machine. Raises ExecutionError when they do not finish."""
    with TemporaryDirectory(prefix="haplan-") as name:
        folder = Path(name)
        write(folder / "task", task)
        status = _run(folder, task.timeout_s)
        if status is None:
            raise ExecutionError(f"the ranks did not finish within {task.timeout_s:g} s")
        if status or not (folder / "outcome").exists():
            failure = folder / "failure"
            text = failure.read_text(encoding="utf-8") if failure.exists() else f"status {status}"
            raise ExecutionError(text)
        return read(folder / "outcome")


def _run(folder: Path, timeout_s: float) -> int | None:
    """Exit status, or None when the time was over."""
    process = subprocess.Popen(
        [sys.executable, "-m", "runner.worker", str(folder)],
        env=_environment(),
        start_new_session=True,
    )
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _environment() -> dict[str, str]:
    """One thread per process, loopback only, and this process's import path."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
