"""Runs a task in processes of its own, so that the caller never loads torch or forks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from costmodel.errors import HaplanError
from runner.task import Outcome, Task, read, write


class ExecutionError(HaplanError):
    """The processes did not finish: a rank raised, or the time was over."""


def launch(task: Task) -> Outcome:
    """Runs the task's ranks on this machine.

    Raises ExecutionError when they do not finish, ModuleNotFoundError without torch.
    """
    if find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    with TemporaryDirectory(prefix="haplan-") as name:
        folder = Path(name)
        write(folder / "task", task)
        status = _run(folder, task.timeout_s)
        if status is None:
            raise ExecutionError(f"the ranks did not finish within {task.timeout_s:g} s")
        if status:
            raise ExecutionError(_story(folder) or f"the processes ended with status {status}")
        return read(folder / "outcome")


def _story(folder: Path) -> str:
    """What went wrong: the traceback of a rank, or what Python itself had to say."""
    files = (folder / "failure", folder / "errors")
    texts = (file.read_text(encoding="utf-8") for file in files if file.exists())
    return next((text for text in texts if text), "")


def _run(folder: Path, timeout_s: float) -> int | None:
    """Exit status, or None when the time was over."""
    with (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "runner.worker", str(folder)],
            env=_environment(),
            stderr=errors,
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
